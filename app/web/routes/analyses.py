"""Analyses: POST, GET, DELETE, their events and their tensors."""

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from app.web.analysis_json import analysis_url
from app.web.arrays import ExactJSON, exact
from app.web.desk import Event
from app.web.routes.problem_docs import problems
from app.web.schemas import (
    AnalysisBody,
    AnalysisRequest,
    NewAnalysisBody,
    TensorAsked,
    TensorBody,
)
from app.web.services import Counted, With, left

router = APIRouter(prefix="/analyses", tags=["analyses"])


@router.post(
    "",
    status_code=201,
    responses={
        201: {"model": NewAnalysisBody},
        **problems(400, 404, 409, 413, 422, 429, 503, 504),
    },
    response_class=ExactJSON,
    dependencies=[Counted],
)
async def create(body: AnalysisRequest, services: With) -> Response:
    """Checks a prompt, stores it under a new id, and puts its run into the queue."""
    created = await services.desk.create(body.model, body.text, body.token_ids)
    return ExactJSON(created, 201, {"Location": analysis_url(created["id"])})


@router.get(
    "/{analysis_id}",
    responses={200: {"model": AnalysisBody}, **problems(404)},
    response_class=ExactJSON,
)
async def read(analysis_id: str, services: With) -> Response:
    """An analysis: its tokens, its predictions, its ledger, and the tensors that can be asked for."""
    return ExactJSON(await services.desk.read(analysis_id), headers={"Cache-Control": "no-cache"})


@router.get(
    "/{analysis_id}/events",
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "Events"},
        **problems(404, 503),
    },
    response_class=EventSourceResponse,
)
async def events(analysis_id: str, services: With) -> Response:
    """Server-sent events: progress {stage, fraction, queue_position}, at last done {} or failed, a problem."""
    return EventSourceResponse(_sent(await services.desk.follow(analysis_id)))


async def _sent(events: AsyncIterator[Event]) -> AsyncIterator[ServerSentEvent]:
    async for name, data in events:
        yield ServerSentEvent(json.dumps(exact(data), allow_nan=False), event=name)


@router.get(
    "/{analysis_id}/tensors/{name}",
    responses={200: {"model": TensorBody}, **problems(404, 409, 422, 429, 503, 504)},
    response_class=ExactJSON,
    dependencies=[Counted],
)
async def tensor(
    analysis_id: str,
    name: str,
    asked: Annotated[TensorAsked, Query()],
    request: Request,
    services: With,
) -> Response:
    """A tensor by name, with some axes fixed and at most three left; some are measured on a target and a foil."""
    given = {name: value for name, value in asked.model_dump().items() if value is not None}
    aim: dict[str, int] = {name: given.pop(name) for name in ("target", "foil") if name in given}
    body = await services.desk.tensor(analysis_id, name, given, aim, lambda: left(request))
    return ExactJSON(body, headers={"Cache-Control": "private, max-age=3600"})


@router.delete("/{analysis_id}", status_code=204, responses=problems(403, 404, 422))
async def delete(analysis_id: str, services: With, x_owner_token: Annotated[str, Header()] = "") -> Response:
    """Deletes an analysis. Needs the owner_token that came with it."""
    await services.desk.delete(analysis_id, x_owner_token)
    return Response(status_code=204)
