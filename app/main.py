"""The application: `create_app` makes every part and joins them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import to_thread
from fastapi import FastAPI
from starlette_compress import CompressMiddleware

from app import __version__
from app.lm.catalog import Catalogue
from app.lm.runner import Runner
from app.settings import Settings
from app.storage.database import open_database
from app.storage.store import Store
from app.web.analysis_json import API
from app.web.assets import Assets, PlotlyFile, VersionedFiles
from app.web.desk import Desk
from app.web.engine import Engine
from app.web.metrics import CountRequests, Metrics
from app.web.middleware import BodyLimit, SecurityHeaders
from app.web.models import ModelList
from app.web.openapi import describe
from app.web.problems import CatchErrors, install_problem_handlers
from app.web.ratelimit import RateLimit
from app.web.routes import analyses, docs, health, lenses, lstm, models, pages, tokenizations
from app.web.services import Services
from app.web.templating import Pages

# static/, templates/ and docs/ lie beside the package.
ROOT = Path(__file__).parent.parent


def create_app(settings: Settings, engine: Engine | None = None) -> FastAPI:
    """A server for these settings. The database is opened, and the default model begins to load, when it starts.

    `engine` stands in for the one that loads models with torch.

    Raises:
        ModelUnavailable: the catalogue of the settings cannot be read.
    """
    catalogue = Catalogue.of(settings)
    engine = engine or Engine(settings, catalogue)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store = Store(await to_thread.run_sync(open_database, settings.effective_database_url))
        runner = Runner(settings, engine.load, engine.summarize)
        known = ModelList(settings, catalogue, runner)
        desk = Desk(known, engine, runner, store)
        app.state.services = Services(settings, known, runner, store, desk, RateLimit(settings))
        try:
            runner.preload(catalogue.default.name)
            yield
        finally:
            await to_thread.run_sync(runner.close)
            await to_thread.run_sync(store.close)

    app = FastAPI(
        title="Headwater",
        version=__version__,
        summary="What each attention head looks at, what it sends, and what the residual stream keeps.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.metrics = Metrics()
    assets, plotly = Assets(ROOT / "static"), PlotlyFile()
    app.state.pages = Pages(ROOT / "templates", assets, plotly.url)
    app.state.docs_folder = ROOT / "docs"
    install_problem_handlers(app)
    for router in (models.router, tokenizations.router, analyses.router, lenses.router, lstm.router):
        app.include_router(router, prefix=API)
    app.include_router(health.router)
    app.include_router(docs.router)
    app.include_router(pages.router)
    app.include_router(lstm.pages)
    app.mount("/static", VersionedFiles(assets))
    app.mount("/plotly", plotly)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    # The last one added is the outermost.
    app.add_middleware(CatchErrors)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    app.add_middleware(CountRequests, metrics=app.state.metrics)
    app.add_middleware(CompressMiddleware, minimum_size=1000)
    app.add_middleware(SecurityHeaders)
    return app
