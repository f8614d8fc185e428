"""Every error as a problem detail (RFC 9457), or as a page where a browser asks for one.

AppError               its own kind, status, message and facts
RequestValidationError 422 "validation", with a pointer into the body or the name of the parameter
HTTPException          404, 405 and what else the framework raises
anything else          500 "internal", with an id that is also in the log, and nothing of the error itself
"""

import logging
import secrets
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import AppError, Busy, TooManyRequests
from app.web.arrays import ExactJSON

log = logging.getLogger("headwater.web")

PROBLEM_TYPE = "application/problem+json"
API_PREFIXES = ("/api/", "/healthz", "/readyz", "/metrics", "/openapi.json")
# Seconds after which a client may ask again.
RETRY_AFTER_S = 10

Problem = dict[str, Any]


def problem_of(error: Exception, instance: str = "") -> Problem:
    """The problem details of any error."""
    match error:
        case AppError():
            return _problem(
                error.kind,
                error.title,
                error.status,
                error.message,
                instance,
                error.facts,
            )
        case RequestValidationError():
            return _validation_problem(error, instance)
        case HTTPException():
            return _http_problem(error, instance)
        case _:
            reference = secrets.token_hex(4)
            log.error("Internal error %s at %s", reference, instance, exc_info=error)
            return _problem(
                "internal",
                "Something went wrong here",
                500,
                f"The server met an error that it did not expect; the operator finds it in the log as {reference}. "
                "Trying again may help.",
                instance,
                {"reference": reference},
            )


def _problem(
    kind: str,
    title: str,
    status: int,
    detail: str,
    instance: str,
    facts: Mapping[str, object] | None = None,
) -> Problem:
    problem: Problem = {
        "type": f"/problems/{kind}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    if facts:
        problem["facts"] = dict(facts)
    if instance:
        problem["instance"] = instance
    return problem


def _validation_problem(error: RequestValidationError, instance: str) -> Problem:
    errors = error.errors()
    if any(item["type"] == "string_unicode" for item in errors):
        kind, title = "unusable-text", "The text holds a character that cannot be used"
        detail = "The text holds half of a surrogate pair, which is not a character. Remove it, or send the whole pair."
    elif any(item["type"] == "json_invalid" for item in errors):
        kind, title = "invalid-json", "The body is not JSON"
        position, reason = errors[0]["loc"][-1], errors[0].get("ctx", {}).get("error", "invalid")
        detail = f"The body could not be read as JSON from character {position} on: {reason}. Send a JSON object."
    else:
        kind, title = "validation", "The request does not have the right form"
        count = len(errors)
        detail = f"{count} thing{'s' if count != 1 else ''} in the request cannot be used; see errors."
    return {
        **_problem(kind, title, 422, detail, instance),
        "errors": [_validation_item(item) for item in errors],
    }


def _validation_item(item: Mapping[str, Any]) -> dict[str, str]:
    where, *path = item["loc"] or ("body",)
    detail = str(item["msg"])
    if where == "body":
        return {
            "pointer": pointer(() if item["type"] == "json_invalid" else path),
            "detail": detail,
        }
    return {"parameter": ".".join(map(str, path)), "in": str(where), "detail": detail}


def pointer(path: Iterable[object]) -> str:
    """A JSON pointer as a URI fragment."""
    return "#" + "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _http_problem(error: HTTPException, instance: str) -> Problem:
    if error.status_code == 404:
        return _problem(
            "not-found",
            "There is nothing at this address",
            404,
            "Check the address.",
            instance,
        )
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        return _problem(
            "method-not-allowed",
            "This address does not take that method",
            405,
            f"It takes: {allowed}.",
            instance,
        )
    if error.status_code == 400:
        detail = "The body could not be read; send JSON in UTF-8."
        return _problem("unreadable-body", "The body cannot be read", 400, detail, instance)
    title = HTTPStatus(error.status_code).phrase
    return _problem(
        title.lower().replace(" ", "-"),
        title,
        error.status_code,
        str(error.detail),
        instance,
    )


def wants_page(request: Request) -> bool:
    """Whether the client is a browser that shows a page, as opposed to a program."""
    is_api = request.url.path.startswith(API_PREFIXES)
    return not is_api and "text/html" in request.headers.get("accept", "")


def problem_response(request: Request, error: Exception) -> Response:
    """The answer for an error, as JSON or as a page."""
    problem = problem_of(error, request.scope["path"])
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, HTTPException) and error.headers:
        headers |= error.headers
    if isinstance(error, Busy | TooManyRequests):
        headers["Retry-After"] = str(RETRY_AFTER_S)
    status = int(problem["status"])
    if wants_page(request):
        pages = request.app.state.pages
        return HTMLResponse(pages.render("error.html", **_page_words(problem)), status, headers)
    return ExactJSON(problem, status, headers, media_type=PROBLEM_TYPE)


def _page_words(problem: Problem) -> dict[str, object]:
    """What the error page says: items of a validation are its next step."""
    items = "; ".join(
        f"{item.get('parameter', item.get('pointer'))}: {item['detail']}" for item in problem.get("errors", [])
    )
    return {"status": problem["status"], "title": problem["title"], "detail": problem["detail"], "next_step": items}


async def _answer(request: Request, error: Exception) -> Response:
    return problem_response(request, error)


def install_problem_handlers(app: FastAPI) -> None:
    """Makes every error that reaches the framework a problem detail."""
    for kind in (AppError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answer)


class CatchErrors:
    """Middleware that answers any other exception, inside the middleware that sets headers and counts answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Calls the application; an exception becomes an answer, unless one has begun."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def watch(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as error:  # the last place where an error can become an answer
            if begun:
                log.exception("An answer broke off at %s", scope["path"])
                raise
            await problem_response(Request(scope), error)(scope, receive, send)
