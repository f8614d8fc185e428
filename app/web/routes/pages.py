"""The pages for people."""

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.web.glossary import read_glossary
from app.web.services import With

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
READ = ["GET", "HEAD"]
NO_STORE = {"Cache-Control": "no-cache"}


@router.api_route("/", methods=READ)
def home(request: Request, services: With) -> Response:
    """The prompt box, with examples."""
    models = [model for model in services.models.all() if model["kind"] == "transformer"]
    return HTMLResponse(
        request.app.state.pages.render_data(
            "index.html",
            models=models,
            default_model=services.models.default,
        ),
        headers=NO_STORE,
    )


async def _analysis_page(template: str, analysis_id: str, request: Request, services: With) -> Response:
    analysis = await services.desk.read(analysis_id)

    def render() -> str:
        page: str = request.app.state.pages.render_data(template, analysis_id=analysis_id, analysis=analysis)
        return page

    return HTMLResponse(await to_thread.run_sync(render), headers=NO_STORE)


@router.api_route("/a/{analysis_id}", methods=READ)
async def workbench(analysis_id: str, request: Request, services: With) -> Response:
    """An analysis, also while it is computed."""
    return await _analysis_page("analysis.html", analysis_id, request, services)


@router.api_route("/a/{analysis_id}/embed", methods=READ)
async def embed(analysis_id: str, request: Request, services: With) -> Response:
    """One head of an analysis, for a frame on another site."""
    return await _analysis_page("embed.html", analysis_id, request, services)


@router.api_route("/glossary", methods=READ)
def glossary(request: Request) -> Response:
    """Every word of the page, the API and the source."""
    terms = read_glossary(request.app.state.docs_folder / "glossary.md")
    return HTMLResponse(request.app.state.pages.render("glossary.html", terms=terms))


@router.api_route("/status", methods=READ)
def status(request: Request, services: With) -> Response:
    """Every model: its state and its self-check."""
    models = [services.models.checked(model["id"]) for model in services.models.all()]
    return HTMLResponse(request.app.state.pages.render_data("status.html", models=models), headers=NO_STORE)
