"""LSTMs: the split of a prediction, and an LSTM beside a transformer on the same text; and their pages."""

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.lm.protocol import LoadedModel, Trace
from app.web.answers.lstm import contributions, grouped_tensor, groups_of, lstm_side, transformer_side
from app.web.arrays import ExactJSON
from app.web.routes.pages import NO_STORE, READ
from app.web.routes.problem_docs import problems
from app.web.schemas import Fixed, TensorBody
from app.web.services import Counted, Services, With, left

router = APIRouter(prefix="/analyses/{analysis_id}", tags=["lstm"], dependencies=[Counted])
pages = APIRouter(prefix="/lstm", include_in_schema=False, default_response_class=HTMLResponse)
KEPT = {"Cache-Control": "private, max-age=3600"}
PROBLEMS = problems(404, 409, 422, 429, 503, 504)


class Prediction(BaseModel):
    """Which prediction is split."""

    model_config = ConfigDict(extra="forbid")
    pos: int = Field(description="Position after which the prediction is made.")
    target: int | None = Field(None, description="Token id whose logit is split; absent: the top prediction.")
    foil: int | None = Field(None, description="Token id whose logit is subtracted; absent: none.")
    source: int | None = Field(None, description="A source whose promoted and suppressed characters are listed.")


@router.get("/contributions", responses={200: {"model": dict[str, Any]}, **PROBLEMS}, response_class=ExactJSON)
async def split(
    analysis_id: str, prediction: Annotated[Prediction, Query()], request: Request, services: With
) -> Response:  # fmt: skip
    """One logit of an LSTM as a sum: over sources, the state before the text and the bias; and over units."""

    def question(loaded: LoadedModel, trace: Trace) -> dict[str, Any]:
        return contributions(loaded, trace, prediction.pos, prediction.target, prediction.foil, prediction.source)

    return ExactJSON(await _asked(services, analysis_id, question, request), headers=KEPT)


@router.get("/beside/{other_id}", responses={200: {"model": dict[str, Any]}, **PROBLEMS}, response_class=ExactJSON)
async def beside(analysis_id: str, other_id: str, request: Request, services: With) -> Response:
    """An LSTM beside a transformer: the characters of every token, and both sides' numbers for the comparison."""
    groups = await _groups(services, analysis_id, other_id)
    lstm = await _asked(services, analysis_id, lambda _, trace: lstm_side(trace), request)
    transformer = await services.desk.ask(other_id, lambda _, trace: transformer_side(trace), lambda: left(request))
    body = {"firsts": groups.firsts, "ends": groups.ends, "lstm": lstm, "transformer": transformer}
    return ExactJSON(body, headers=KEPT)


@router.get(
    "/beside/{other_id}/tensors/{name}",
    responses={200: {"model": TensorBody}, **PROBLEMS},
    response_class=ExactJSON,
)
async def beside_tensor(
    analysis_id: str, other_id: str, name: str, fixed: Annotated[Fixed, Query()], request: Request, services: With
) -> Response:
    """A tensor of the LSTM with its characters summed into the transformer's tokens."""
    groups = await _groups(services, analysis_id, other_id)
    indices = {axis: index for axis, index in fixed.model_dump().items() if index is not None}
    body = await _asked(
        services, analysis_id, lambda _, trace: grouped_tensor(trace, groups, name, indices), request
    )  # fmt: skip
    return ExactJSON(body, headers=KEPT)


async def _asked(services: Services, analysis_id: str, question: Any, request: Request) -> dict[str, Any]:
    answer: dict[str, Any] = await services.desk.ask(analysis_id, question, lambda: left(request), "lstm")
    return answer


async def _groups(services: Services, analysis_id: str, other_id: str) -> Any:
    lstm, other = await services.desk.stored(analysis_id), await services.desk.stored(other_id)
    return await to_thread.run_sync(groups_of, lstm, other)


@pages.api_route("", methods=READ)
def start(request: Request, services: With) -> Response:
    """The prompt box of the comparison."""
    models = services.models.all()
    return _page(
        request,
        "lstm_start.html",
        lstms=[model for model in models if model["kind"] == "lstm"],
        transformers=[model for model in models if model["kind"] == "transformer"],
    )


@pages.api_route("/{analysis_id}", methods=READ)
async def alone(analysis_id: str, request: Request, services: With) -> Response:
    """An LSTM's analysis."""
    analysis = await services.desk.read(analysis_id)
    if analysis["model"]["kind"] != "lstm":
        return RedirectResponse(f"/a/{analysis['id']}", 303)
    return await to_thread.run_sync(lambda: _page(request, "lstm.html", analysis=analysis, other=None))


@pages.api_route("/{analysis_id}/beside/{other_id}", methods=READ)
async def side_by_side(analysis_id: str, other_id: str, request: Request, services: With) -> Response:
    """An LSTM's analysis beside a transformer's."""
    await _groups(services, analysis_id, other_id)
    analysis, other = await services.desk.read(analysis_id), await services.desk.read(other_id)
    return await to_thread.run_sync(lambda: _page(request, "lstm_beside.html", analysis=analysis, other=other))


def _page(request: Request, template: str, **context: Any) -> Response:
    return HTMLResponse(request.app.state.pages.render_data(template, **context), headers=NO_STORE)
