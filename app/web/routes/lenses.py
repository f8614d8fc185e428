"""Lenses: questions about one analysis whose answers are computed from its trace."""

import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from app.lm.protocol import LoadedModel, Trace
from app.web.analysis_json import analysis_url
from app.web.answers.attribution import attribution_answer, sources_answer
from app.web.answers.edge import edge_answer
from app.web.answers.heads import heads_answer
from app.web.answers.lens import block_answer, lens_answer, plan, require_one
from app.web.answers.schemas import (
    AtHead,
    AtPosition,
    AttributionBody,
    Cell,
    EdgeBody,
    HeadsAsked,
    HeadsBody,
    LensAsked,
    LensBody,
    SourcesBody,
    WholeLensAsked,
)
from app.web.arrays import ExactJSON, exact
from app.web.problems import problem_of
from app.web.routes.problem_docs import problems
from app.web.services import Counted, Services, With, left

router = APIRouter(prefix="/analyses/{analysis_id}", tags=["lenses"], dependencies=[Counted])

Answer = Callable[[LoadedModel, Trace, str, dict[str, Any]], dict[str, Any]]


def answers(body: type) -> dict[str, Any]:
    """What every question has in common: its answer's shape, its problems, and numbers that stay exact."""
    responses = {200: {"model": body}, **problems(404, 409, 422, 429, 503, 504)}
    return {"responses": responses, "response_class": ExactJSON}


async def asked(
    request: Request, services: Services, analysis_id: str, name: str, answer: Answer, parameters: dict[str, Any]
) -> Response:
    """The answer to one question, computed in the model's thread; cancelled when the client goes away."""
    path = f"{analysis_url(analysis_id)}/{name}"
    question = partial(_answered, answer, path, parameters)
    body = await services.desk.ask(analysis_id, question, lambda: left(request))
    return ExactJSON(body, headers={"Cache-Control": "private, max-age=3600"})


def _answered(
    answer: Answer, path: str, parameters: dict[str, Any], loaded: LoadedModel, trace: Trace
) -> dict[str, Any]:
    return answer(loaded, trace, path, parameters)


@router.get("/edge", **answers(EdgeBody))
async def edge(analysis_id: str, cell: Annotated[Cell, Query()], request: Request, services: With) -> Response:
    """One cell of one head, the whole equation: score, pattern, message, what arrives, and what it does to a logit."""
    return await asked(request, services, analysis_id, "edge", edge_answer, cell.model_dump())


@router.get("/attribution", **answers(AttributionBody))
async def attribution(
    analysis_id: str, asked_for: Annotated[AtPosition, Query()], request: Request, services: With
) -> Response:
    """Direct logit attribution: every component's part of one logit, from the biases to the model's own number."""
    return await asked(request, services, analysis_id, "attribution", attribution_answer, asked_for.model_dump())


@router.get("/attribution/sources", **answers(SourcesBody))
async def sources(
    analysis_id: str, asked_for: Annotated[AtHead, Query()], request: Request, services: With
) -> Response:
    """One head's part of a logit, split over the sources that its messages come from."""
    return await asked(request, services, analysis_id, "attribution/sources", sources_answer, asked_for.model_dump())


@router.get("/heads", **answers(HeadsBody))
async def heads(
    analysis_id: str, asked_for: Annotated[HeadsAsked, Query()], request: Request, services: With
) -> Response:
    """Every head summed up: on this prompt, and on repeated random tokens, with what stands out there."""
    snapshot = await services.desk.snapshot(analysis_id)
    answer = partial(heads_answer, snapshot)
    return await asked(request, services, analysis_id, "heads", answer, asked_for.model_dump())


@router.get("/lens", **answers(LensBody))
async def lens(
    analysis_id: str, asked_for: Annotated[LensAsked, Query()], request: Request, services: With
) -> Response:
    """The logit lens of one position at every point, or of one point at every position."""
    parameters = asked_for.model_dump()
    require_one(parameters)
    return await asked(request, services, analysis_id, "lens", lens_answer, parameters)


@router.get(
    "/lens/events",
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "Events"},
        **problems(404, 409, 422, 429, 503, 504),
    },
    response_class=EventSourceResponse,
)
async def whole_lens(
    analysis_id: str, asked_for: Annotated[WholeLensAsked, Query()], request: Request, services: With
) -> Response:
    """The lens of every point and position in blocks: server-sent events rows {…, fraction}, at last done or failed.

    Each block is a question of its own, so that others are answered in between; closing the connection ends the rest.
    """
    parameters = asked_for.model_dump()
    blocks = await services.desk.ask(analysis_id, lambda loaded, trace: plan(trace, parameters), lambda: left(request))
    return EventSourceResponse(_blocks(services, analysis_id, blocks, parameters))


async def _blocks(
    services: Services, analysis_id: str, blocks: list[list[tuple[int, int]]], parameters: dict[str, Any]
) -> AsyncIterator[ServerSentEvent]:
    done, total = 0, sum(len(block) for block in blocks)
    for block in blocks:
        try:
            # Sending to a client that has gone cancels this generator, and with it the question that runs.
            body = await services.desk.ask(analysis_id, partial(_block, block, parameters))
        except Exception as error:  # the answer has begun; what goes wrong now is an event
            yield _event("failed", problem_of(error))
            return
        done += len(block)
        yield _event("rows", {**body, "fraction": done / total})
    yield _event("done", {"n_rows": total})


def _block(
    rows: list[tuple[int, int]], parameters: dict[str, Any], loaded: LoadedModel, trace: Trace
) -> dict[str, Any]:
    return block_answer(loaded, trace, rows, parameters)


def _event(name: str, data: object) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(exact(data), allow_nan=False), event=name)
