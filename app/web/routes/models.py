"""GET models, GET models/{id}."""

from fastapi import APIRouter
from starlette.responses import Response

from app.web.arrays import ExactJSON
from app.web.routes.problem_docs import problems
from app.web.schemas import CheckedModelBody, ModelsBody
from app.web.services import With

router = APIRouter(tags=["models"])


@router.get("/models", responses={200: {"model": ModelsBody}}, response_class=ExactJSON)
def list_models(services: With) -> Response:
    """Every model that can be chosen, and which one is used where none is named."""
    return ExactJSON({"default": services.models.default, "models": services.models.all()})


@router.get(
    "/models/{model_id}",
    responses={200: {"model": CheckedModelBody}, **problems(404)},
    response_class=ExactJSON,
)
def get_model(model_id: str, services: With) -> Response:
    """One model: its anatomy, its limits, its state and its self-check."""
    return ExactJSON(services.models.checked(model_id))
