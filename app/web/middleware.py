"""Headers of every answer, and the limit of every body."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import BodyTooLarge
from app.web.problems import problem_response

_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors {ancestors}"
)


def _may_be_embedded(path: str) -> bool:
    return path.startswith("/a/") and path.endswith("/embed")


class SecurityHeaders:
    """Middleware that lets a page load from this server alone, and only the embeddable page be framed elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Adds the headers to the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        embedded = _may_be_embedded(scope["path"])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = _POLICY.format(ancestors="*" if embedded else "'self'")
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "same-origin"
                headers["Cross-Origin-Opener-Policy"] = "same-origin"
                if not embedded:
                    headers["X-Frame-Options"] = "SAMEORIGIN"
            await send(message)

        await self._app(scope, receive, send_with_headers)


class BodyLimit:
    """Middleware that refuses a large body: by its announced length before any of it is read, else once it is over.

    A body within the limit is read here and handed on whole.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Calls the application with the body, or answers 413."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > self._max_bytes:
            await self._refuse(scope, receive, send, int(announced))
            return
        chunks: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self._max_bytes:
                await self._refuse(scope, receive, send, size)
                return
            more = message.get("more_body", False)
        pending: Message | None = {
            "type": "http.request",
            "body": b"".join(chunks),
            "more_body": False,
        }

        async def replay() -> Message:
            nonlocal pending
            if pending is None:
                return await receive()
            message, pending = pending, None
            return message

        await self._app(scope, replay, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, size: int) -> None:
        error = BodyTooLarge(
            f"The request has {size:,} bytes or more; at most {self._max_bytes:,} are taken. Send a shorter text.",
            size_bytes=size,
            limit=self._max_bytes,
        )
        await problem_response(Request(scope), error)(scope, receive, send)
