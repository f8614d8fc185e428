"""What every test may use: the pretrained models, small settings, and the rule that a full run is really full."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# Shapes that the source states are checked while the tests run. This must come before the first import of app.
_TENSOR_MODULES = [
    "app.analysis", "app.lm.anatomy", "app.lm.devices", "app.lm.families", "app.lm.loading", "app.lm.lstm",
    "app.lm.norms", "app.lm.own_attention", "app.lm.recorder", "app.lm.trace",
]  # fmt: skip
_hook = install_import_hook(_TENSOR_MODULES, "beartype.beartype")

from app.lm.catalog import MANIFEST  # noqa: E402
from app.settings import Settings  # noqa: E402

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("HEADWATER_TEST_DATA", ROOT / "data"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--complete",
        action="store_true",
        help="Fail where a test was skipped, or where no browser test or no test of a pretrained model ran.",
    )


class _Complete:
    """Turns a run in which something was left out into a failure."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole
        self._skipped: list[str] = []
        self._passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self._skipped.append(report.nodeid)
        if report.when == "call" and report.passed:
            self._passed |= {"browser", "real_model"} & set(report.keywords)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        missing = {"browser", "real_model"} - self._passed if self._whole else set()
        if session.exitstatus == 0 and (self._skipped or missing):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for nodeid in self._skipped:
            terminalreporter.write_line(f"INCOMPLETE: skipped {nodeid}", red=True)
        for kind in sorted({"browser", "real_model"} - self._passed if self._whole else ()):
            terminalreporter.write_line(f"INCOMPLETE: no {kind} test passed", red=True)


def pytest_configure(config: pytest.Config) -> None:
    # Workers of a distributed run report to the process that has started them.
    if config.getoption("--complete") and not hasattr(config, "workerinput"):
        whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
        config.pluginmanager.register(_Complete(whole), "complete")


def _model_folder(name: str) -> Path:
    folder = DATA / "models" / name
    if not (folder / MANIFEST).is_file():
        pytest.fail(f"The model {name} is not in {folder}. `make test` fetches it; so does: headwater fetch {name}")
    return folder


@pytest.fixture(scope="session")
def smollm2_folder() -> Path:
    """The folder of SmolLM2-135M-Instruct."""
    return _model_folder("smollm2-135m")


@pytest.fixture(scope="session")
def textgenrnn_folder() -> Path:
    """The folder of the pretrained character LSTM."""
    return _model_folder("textgenrnn")


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No HEADWATER_ variable of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith("HEADWATER_"):
            monkeypatch.delenv(name)
    yield


@pytest.fixture
def settings(tmp_path: Path, clean_environment: None) -> Settings:
    """Settings with an empty data folder."""
    return Settings(data_dir=tmp_path)


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter, for tests that need a process of their own."""
    return sys.executable
