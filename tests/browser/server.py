"""A server in a process of its own, as a user starts it."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
STARTS_WITHIN_S = 120


class Server:
    """`headwater serve` on a free port, with a data folder and a catalogue; can be stopped and started again."""

    def __init__(self, data: Path, models: tuple[str, ...], **variables: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HEADWATER_")}
        self._environment = {
            **kept,
            "HEADWATER_DATA_DIR": str(data),
            "HEADWATER_MODELS": json.dumps(models),
            "HEADWATER_RATE_LIMIT": "",
            **variables,
        }
        self._log = data / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process and returns when it is ready to work."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app", "serve", "--port", str(self.port)],
                env=self._environment, cwd=ROOT, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the server did not become ready:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            return False

    def stop(self) -> None:
        """Ends the process, by force if it does not end by itself."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
