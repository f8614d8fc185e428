"""The description of problem answers in the API's schema."""

from http import HTTPStatus
from typing import Any

from app.web.problems import PROBLEM_TYPE
from app.web.schemas import ProblemBody


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Entries for `responses=` of a route that can answer with these statuses."""
    schema = {"$ref": f"#/components/schemas/{ProblemBody.__name__}"}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {PROBLEM_TYPE: {"schema": schema}},
        }
        for status in statuses
    }
