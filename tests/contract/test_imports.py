"""Which part may import which: the rules of docs/architecture.md."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
APP = ROOT / "app"

# What each part of app/ may import of app/; the parts that are files stand without a folder.
MAY_IMPORT = {
    "errors": set(),
    "settings": set(),
    "domain": {"errors"},
    "lm": {"errors", "settings", "domain"},
    "analysis": {"errors", "settings", "domain", "lm"},
    "storage": {"errors", "settings", "domain"},
    "web": {"", "errors", "settings", "domain", "lm", "analysis", "storage"},
    "main": {"", "errors", "settings", "domain", "lm", "analysis", "storage", "web"},
    "serving": {"errors", "settings", "main"},
    "analyzing": {"errors", "settings", "domain", "lm", "analysis", "web"},
    "__main__": {
        "",
        "errors",
        "settings",
        "domain",
        "lm",
        "analysis",
        "storage",
        "web",
        "main",
        "serving",
        "analyzing",
    },
    "__init__": set(),
}
# Libraries that only these parts may import.
ONLY_IN = {
    "torch": {"lm", "analysis"},
    "transformers": {"lm"},
    "sqlalchemy": {"storage"},
    "alembic": {"storage"},
    "fastapi": {"web", "main"},
    "starlette": {"web", "main"},
    "uvicorn": {"serving"},
}


def _part(path: Path) -> str:
    return path.relative_to(APP).parts[0].removesuffix(".py")


def _imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            # `from app import x` imports the package itself, `from app.lm import x` perhaps a module.
            names.add(node.module)
    return names


SOURCES = sorted(APP.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(APP)))
def test_a_part_imports_only_what_it_may(path: Path) -> None:
    part = _part(path)
    assert part in MAY_IMPORT, f"app/{part} is not in docs/architecture.md"
    for name in _imported(path):
        top, _, rest = name.partition(".")
        if top == "app":
            other = rest.split(".")[0]
            assert other == part or other in MAY_IMPORT[part], f"app/{part} imports {name}"
        elif top in ONLY_IN:
            assert part in ONLY_IN[top], f"app/{part} imports {name}"


def test_there_are_sources_to_check() -> None:
    assert len(SOURCES) > 40


def test_only_the_plot_modules_touch_plotly() -> None:
    js = ROOT / "static" / "js"
    users = {path.relative_to(js).parts[0] for path in js.rglob("*.js") if "window.Plotly" in path.read_text()}
    assert users == {"plot"}


def test_views_never_import_each_other() -> None:
    views = ROOT / "static" / "js" / "views"
    found = list(views.glob("*.js"))
    assert len(found) > 5
    for path in found:
        assert 'from "./' not in path.read_text(), path.name


def test_no_module_works_when_it_is_imported(python: str) -> None:
    """Importing the server must not bring in torch: the first page would wait for it."""
    import subprocess

    code = "import sys, app.main; print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
