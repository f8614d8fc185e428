"""Whether the server lives, whether it can work, and what it has done."""

from anyio import to_thread
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.errors import ModelUnavailable
from app.web.arrays import ExactJSON
from app.web.metrics import METRICS_TYPE
from app.web.routes.problem_docs import problems
from app.web.services import With

router = APIRouter(tags=["health"])


@router.get("/healthz", response_class=ExactJSON)
async def healthz() -> Response:
    """The server answers."""
    return ExactJSON({"status": "ok"}, headers={"Cache-Control": "no-store"})


@router.get("/readyz", responses=problems(503), response_class=ExactJSON)
async def readyz(services: With) -> Response:
    """The database answers and the default model is in memory or can be loaded again."""
    await to_thread.run_sync(services.store.ping)
    model = services.models.one(services.models.default)
    if model["fingerprint"] is None or model["state"] in ("missing", "failed"):
        message = model["message"] or f"{model['title']} is still being loaded; ask again in a few seconds."
        raise ModelUnavailable(message, model=model["id"], state=model["state"])
    return ExactJSON({"status": "ready", "model": model["id"]}, headers={"Cache-Control": "no-store"})


@router.get("/metrics", response_class=Response)
async def metrics(request: Request, services: With) -> Response:
    """Counters for Prometheus."""
    return Response(request.app.state.metrics.render(services.runner), media_type=METRICS_TYPE)
