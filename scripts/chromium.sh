#!/bin/sh
# Makes sure that the browser tests find a Chromium: any that is installed, else Debian's package where apt may be used.
set -eu
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing Chromium for the browser tests"
    apt-get update -qq
    # The fonts make text outside Latin measurable in screenshots.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        chromium fonts-dejavu-core fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji >/dev/null
    exit 0
fi
echo "The browser tests need Chromium, and this user may not install it. Run: sudo apt install chromium" >&2
exit 1
