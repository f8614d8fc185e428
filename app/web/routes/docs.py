"""/docs: the API in words, made from its own description.

The framework's page loads its scripts from another host and starts them inline; both are forbidden here. This one is
plain HTML, works without scripts and prints.
"""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.errors import AppError
from app.web.openapi import describe
from app.web.routes.pages import READ

router = APIRouter(include_in_schema=False)


@router.api_route("/docs", methods=READ)
def docs(request: Request) -> Response:
    """Every operation with its parameters, its body and its answers, and every kind of problem."""
    document = describe(request.app)
    page = request.app.state.pages.render(
        "api.html",
        operations=[
            _operation(path, method, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ],
        schemas=[_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())],
        problems=sorted(_kinds(AppError), key=lambda kind: (kind.status, kind.kind)),
    )
    return HTMLResponse(page)


def _kinds(root: type[AppError]) -> list[type[AppError]]:
    return [kind for child in root.__subclasses__() for kind in (child, *_kinds(child))]


def _operation(path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {})
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "about": operation.get("description", ""),
        "parameters": [
            {
                "name": parameter["name"],
                "where": parameter["in"],
                "required": parameter.get("required", False),
                "type": _type(parameter["schema"]),
            }
            for parameter in operation.get("parameters", [])
        ],
        "body": next((_type(content["schema"]) for content in body.values()), ""),
        "answers": [
            {"status": status, "about": answer["description"], "types": _content(answer)}
            for status, answer in operation["responses"].items()
        ],
    }


def _content(answer: dict[str, Any]) -> list[str]:
    return [f"{_type(content.get('schema', {}))} as {kind}" for kind, content in answer.get("content", {}).items()]


def _schema(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    return {
        "name": name,
        "about": schema.get("description", ""),
        "fields": [
            {"name": field, "type": _type(item), "required": field in required, "about": item.get("description", "")}
            for field, item in schema.get("properties", {}).items()
        ],
    }


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words: `Model`, `list of integer`, `string or null`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))
