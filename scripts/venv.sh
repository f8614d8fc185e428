#!/bin/sh
# Makes the virtual environment $1, or leaves one that works. Needs PYTHON 3.11 or newer, and its venv module.
set -eu
venv=$1
python=${PYTHON:-python3}

command -v "$python" >/dev/null 2>&1 || {
    echo "There is no $python here. Install Python 3.11 or newer (Debian: apt install python3 python3-venv)." >&2
    exit 1
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "$("$python" --version) is too old; Headwater needs 3.11 or newer. Name another one: make PYTHON=python3.12" >&2
    exit 1
}
"$venv/bin/python" -m pip --version >/dev/null 2>&1 && exit 0

if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    # Debian keeps this part of Python in a package of its own.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "Installing python3-venv"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
    else
        echo "This Python has no venv module. Install it, then run make again: sudo apt install python3-venv" >&2
        exit 1
    fi
fi
echo "Making the virtual environment $venv"
rm -rf "$venv"
"$python" -m venv "$venv"
