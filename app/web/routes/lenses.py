"""Lenses: questions about one analysis whose answers are computed from its trace."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.lm.protocol import LoadedModel, Trace
from app.web.analysis_json import analysis_url
from app.web.arrays import ExactJSON
from app.web.answers.edge import edge_answer
from app.web.answers.schemas import Cell, EdgeBody
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
