"""What the routers work with, made once by `create_app` and found on `app.state`."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from app.lm.runner import Runner
from app.settings import Settings
from app.storage.store import Store
from app.web.desk import Desk
from app.web.models import ModelList
from app.web.ratelimit import RateLimit


@dataclass(frozen=True)
class Services:
    """The parts of one server."""

    settings: Settings
    models: ModelList
    runner: Runner
    store: Store
    desk: Desk
    rate_limit: RateLimit


def services_of(request: Request) -> Services:
    """The services of the application that a request came to."""
    return cast(Services, request.app.state.services)


def count_request(request: Request) -> None:
    """Counts a request that computes something.

    Raises:
        TooManyRequests: the client has used up its share.
    """
    services_of(request).rate_limit.check(request)


async def left(request: Request) -> None:
    """Ends when the client of a request has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


With = Annotated[Services, Depends(services_of)]
Counted = Depends(count_request)
