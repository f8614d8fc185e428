"""The description of the API: the framework's, with problem details where it would describe its own errors."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.web.problems import PROBLEM_TYPE
from app.web.schemas import ProblemBody

_PROBLEM = {PROBLEM_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemBody.__name__}"}}}


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas[ProblemBody.__name__] = ProblemBody.model_json_schema()
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        for path in document["paths"].values():
            for operation in path.values():
                if "422" in operation["responses"]:
                    operation["responses"]["422"] = {"description": "Unprocessable Content", "content": _PROBLEM}
        app.openapi_schema = document
    return app.openapi_schema
