"""Static files under addresses that change with their content, and plotly.js from the installed package.

`/static/VERSION/js/core/store.js`: the version is a hash of the whole tree and stands before the path, so that a
module's relative imports carry it too. An address with the current version may be kept for a year; any other version
gives the current file and is asked about again each time.
"""

import gzip
import hashlib
import threading
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import zstandard
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

FOREVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}


class Assets:
    """The static tree and its version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._seen: tuple[tuple[str, int, int], ...] = ()
        self._version = ""

    @property
    def version(self) -> str:
        """Twelve hexadecimal digits of the content; read again only where a file has changed."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        seen = tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)
        with self._lock:
            if seen != self._seen or not self._version:
                digest = hashlib.sha256()
                for path in files:
                    digest.update(str(path.relative_to(self.folder)).encode() + b"\0" + path.read_bytes())
                self._seen, self._version = seen, digest.hexdigest()[:12]
            return self._version

    def url(self, path: str) -> str:
        """The address of a file, for templates."""
        return f"/static/{self.version}/{path}"


class VersionedFiles(StaticFiles):
    """Serves `VERSION/path` from the static tree."""

    def __init__(self, assets: Assets) -> None:
        super().__init__(directory=assets.folder)
        self._assets = assets

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, with the right to keep it where its version is the current one."""
        version, _, rest = path.partition("/")
        if not rest:
            raise HTTPException(404)
        response = await super().get_response(rest, scope)
        current = await to_thread.run_sync(lambda: self._assets.version)
        response.headers["Cache-Control"] = FOREVER if version == current else ASK_AGAIN
        content_type = _TYPES.get(Path(rest).suffix)
        if content_type is not None and response.status_code == 200:
            response.headers["Content-Type"] = f"{content_type}; charset=utf-8"
        return response


@dataclass(frozen=True)
class _Encoded:
    name: str
    body: bytes


class PlotlyFile:
    """plotly.min.js of the installed `plotly` package, compressed once and kept."""

    def __init__(self) -> None:
        self.url = f"/plotly/{metadata.version('plotly')}/plotly.min.js"
        self._kept: dict[str, _Encoded] = {}
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the file in the best encoding that the client takes."""
        headers = Headers(scope=scope)
        etag = f'"{self.url}"'
        sent = {"Cache-Control": FOREVER, "ETag": etag, "Vary": "Accept-Encoding"}
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        if scope["path"] != self.url:
            raise HTTPException(404)
        if headers.get("if-none-match") == etag:
            await Response(status_code=304, headers=sent)(scope, receive, send)
            return
        accepted = {part.split(";")[0].strip() for part in headers.get("accept-encoding", "").split(",")}
        name = next((name for name in ("br", "zstd", "gzip") if name in accepted), "")
        encoded = await to_thread.run_sync(self._encoded, name)
        if encoded.name:
            sent["Content-Encoding"] = encoded.name
        await Response(encoded.body, headers=sent, media_type="text/javascript")(scope, receive, send)

    def _encoded(self, name: str) -> _Encoded:
        with self._lock:
            if name not in self._kept:
                body = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
                if name == "br":
                    body = brotli.compress(body, quality=5)
                elif name == "zstd":
                    body = zstandard.ZstdCompressor(level=9).compress(body)
                elif name == "gzip":
                    body = gzip.compress(body, compresslevel=6, mtime=0)
                self._kept[name] = _Encoded(name, body)
            return self._kept[name]
