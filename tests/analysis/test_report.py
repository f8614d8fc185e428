"""The report: what is written unasked, what only by name."""

import numpy as np
import pytest

from app.analysis import report
from app.analysis.report import full_report, report_names
from app.errors import NotFound, TooCostly
from app.lm.loading import LoadedTransformer, load_transformer
from app.lm.trace import Trace
from app.settings import Settings
from tests.web.conftest import save_tiny_model


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedTransformer:
    folder = tmp_path_factory.mktemp("report")
    save_tiny_model(folder)
    return load_transformer("tiny", folder, Settings(data_dir=folder))


@pytest.fixture(scope="module")
def trace(loaded: LoadedTransformer) -> Trace:
    return loaded.record(tuple(range(10, 20)))


def test_without_names_everything_is_there(loaded: LoadedTransformer, trace: Trace) -> None:
    assert tuple(full_report(loaded, trace)) == report_names()


def test_the_pattern_is_that_of_the_trace(loaded: LoadedTransformer, trace: Trace) -> None:
    pattern = full_report(loaded, trace, ("pattern",))["pattern"]
    for layer in range(2):
        np.testing.assert_array_equal(pattern[layer], trace.pattern(layer).numpy())


def test_more_than_the_limit_is_refused_with_the_number_unless_it_is_named(
    loaded: LoadedTransformer, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_bytes = 2 * 4 * 10 * 10 * 4  # layers, heads, queries, keys, four bytes each
    assert report.pattern_bytes(trace) == n_bytes
    monkeypatch.setattr(report, "LARGEST_UNNAMED_BYTES", n_bytes - 1)
    with pytest.raises(TooCostly, match="pattern") as raised:
        full_report(loaded, trace)
    assert raised.value.facts["bytes"] == n_bytes
    assert full_report(loaded, trace, ("pattern",))["pattern"].nbytes == n_bytes
    monkeypatch.setattr(report, "LARGEST_UNNAMED_BYTES", n_bytes)
    assert "pattern" in full_report(loaded, trace)


def test_an_unknown_name_is_answered_with_those_there_are(loaded: LoadedTransformer, trace: Trace) -> None:
    with pytest.raises(NotFound, match="stream_norm"):
        full_report(loaded, trace, ("streams",))


def test_the_number_of_a_refusal_is_what_the_default_model_needs(loaded: LoadedTransformer, trace: Trace) -> None:
    """270 heads and 2,048 tokens: 270 · 2048² · 4 bytes are over the limit, 1,024 tokens are not."""
    assert 270 * 2048**2 * 4 > report.LARGEST_UNNAMED_BYTES > 270 * 1024**2 * 4
