"""A model hub of one repository on the loopback interface: as much of its protocol as a download uses."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serve_hub(folder: Path, name: str) -> Iterator[str]:
    """Serves the files of `folder` as the repository `name`; yields the hub's address."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, with_body: bool) -> None:
            path = self.path.split("?")[0]
            files = sorted(p for p in folder.iterdir() if p.is_file())
            if path == f"/api/models/{name}/revision/{COMMIT}":
                siblings = [{"rfilename": p.name} for p in files]
                body = json.dumps({"id": name, "modelId": name, "sha": COMMIT, "siblings": siblings}).encode()
                self._send(body, {"Content-Type": "application/json"}, with_body)
            elif path == f"/api/models/{name}/tree/{COMMIT}":
                body = json.dumps(
                    [{"type": "file", "path": p.name, "size": p.stat().st_size, "oid": "0" * 40} for p in files]
                ).encode()
                self._send(body, {"Content-Type": "application/json"}, with_body)
            elif path.startswith(f"/{name}/resolve/{COMMIT}/"):
                file = folder / path.rsplit("/", 1)[1]
                if not file.is_file():
                    self.send_error(404)
                    return
                body = file.read_bytes()
                etag = hashlib.sha256(body).hexdigest()
                self._send(body, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}, with_body)
            else:
                self.send_error(404)

        def _send(self, body: bytes, headers: dict[str, str], with_body: bool) -> None:
            self.send_response(200)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def do_GET(self) -> None:
            self._answer(True)

        def do_HEAD(self) -> None:
            self._answer(False)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
