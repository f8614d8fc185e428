"""The documentation is held to the code."""

import json
import re
from pathlib import Path

import pytest

from app.errors import AppError
from app.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _default(value: object) -> str:
    if value is None:
        return "none"
    if value == "":
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{json.dumps(list(value)) if isinstance(value, tuple) else value}`"


def test_the_readme_lists_every_setting_with_its_default_and_meaning() -> None:
    listed = re.findall(r"^\| `(HEADWATER_\w+)` \| (.+?) \| (.+?) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    expected = [
        (f"HEADWATER_{name.upper()}", _default(field.default), field.description)
        for name, field in Settings.model_fields.items()
    ]
    assert listed == expected


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_name_only_variables_that_exist(path: Path) -> None:
    known = {f"HEADWATER_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"HEADWATER_[A-Z_]+[A-Z]", path.read_text())) <= known


def test_every_error_has_its_own_kind_and_stands_in_the_tree() -> None:
    import app.errors

    tree = app.errors.__doc__ or ""
    kinds: list[str] = []
    todo: list[type[AppError]] = [AppError]
    while todo:
        error = todo.pop()
        todo += error.__subclasses__()
        if error.__module__ != "app.errors":
            continue
        kinds.append(error.kind)
        assert error.__name__ in tree
    assert len(kinds) == len(set(kinds))


def test_the_image_bakes_in_what_the_catalogue_names() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    names = set(re.findall(r"HEADWATER_([A-Z_]+)[ =]", dockerfile))
    assert names <= {name.upper() for name in Settings.model_fields}
    assert "USER headwater" in dockerfile
    assert "HEALTHCHECK" in dockerfile
