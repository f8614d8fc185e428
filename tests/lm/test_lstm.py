import json
from pathlib import Path

import numpy as np
import pytest
import torch

from app.errors import ModelUnavailable, UnknownToken, Unsupported
from app.lm.lstm import LoadedLstm, load_lstm
from app.lm.protocol import LoadedModel, Trace
from app.settings import Settings
from tests.lm.lstm_reference import NETWORKS, random_tensors, run_reference, steps_of, write_folder

TEXT = "abc de fgh ab cde"
# float32 against float64 over at most 17 steps of three layers.
CLOSE = 2e-5


@pytest.fixture(scope="session")
def textgenrnn(textgenrnn_folder: Path) -> LoadedLstm:
    return load_lstm("textgenrnn", textgenrnn_folder, Settings())


def _loaded(name: str, tmp_path: Path) -> LoadedLstm:
    seed, units, layers, attention, window = NETWORKS[name]
    folder = write_folder(tmp_path / "tiny", random_tensors(seed, units, layers, attention), window)
    return load_lstm("tiny", folder, Settings())


def _ids(loaded: LoadedLstm, text: str = TEXT) -> tuple[int, ...]:
    return tuple(token.id for token in loaded.encode(text))


@pytest.mark.parametrize("name", NETWORKS)
def test_gates_states_and_logits_are_those_of_a_slow_float64_network(name: str, tmp_path: Path) -> None:
    seed, units, layers, attention, window = NETWORKS[name]
    loaded = _loaded(name, tmp_path)
    ids = _ids(loaded)
    trace = loaded.record(ids)
    tensors = random_tensors(seed, units, layers, attention)
    for reader in range(len(ids)):
        expected = run_reference(tensors, steps_of(list(ids), reader, window))
        for kept, letter in zip(trace.gates.tensors(), "ifgoch", strict=True):
            ours = kept[:, reader].numpy()
            theirs = np.array([getattr(layer[-1], letter) for layer in expected.steps])
            np.testing.assert_allclose(ours, theirs, atol=CLOSE, err_msg=f"{letter} at {reader}")
        np.testing.assert_allclose(trace.logits(reader, reader + 1)[0].numpy(), expected.logits, atol=10 * CLOSE)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_replayed_run_holds_every_step_of_the_reference(name: str, tmp_path: Path) -> None:
    seed, units, layers, attention, window = NETWORKS[name]
    loaded = _loaded(name, tmp_path)
    ids = _ids(loaded)
    trace = loaded.record(ids)
    for reader in (0, 3, len(ids) - 1):
        expected = run_reference(random_tensors(seed, units, layers, attention), steps_of(list(ids), reader, window))
        run = trace.run(reader)
        np.testing.assert_allclose(run.readout.numpy(), expected.weights, atol=CLOSE)
        theirs = np.array([[step.c for step in layer] for layer in expected.steps])
        np.testing.assert_allclose(run.gates.cell.numpy(), theirs, atol=CLOSE)
        assert run.n_padding + len(run.sources) == len(expected.weights)


@pytest.mark.parametrize("name", NETWORKS)
def test_recorded_logits_are_those_of_torchs_own_lstm(name: str, tmp_path: Path) -> None:
    loaded = _loaded(name, tmp_path)
    ids = _ids(loaded)
    plain = loaded.plain_logits(ids, list(range(len(ids))))
    torch.testing.assert_close(loaded.record(ids).logits(0, len(ids)), plain, atol=1e-5, rtol=1e-5)


def test_a_longer_text_does_not_change_what_was_recorded_of_its_beginning(tmp_path: Path) -> None:
    loaded = _loaded("window, attention, two layers", tmp_path)
    short, long = loaded.record(_ids(loaded, "abc de")), loaded.record(_ids(loaded))
    torch.testing.assert_close(long.gates.cell[:, :6], short.gates.cell, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(long.logits(0, 6), short.logits(0, 6), atol=1e-6, rtol=1e-6)


def test_a_loaded_lstm_is_what_the_runner_asks_for(tmp_path: Path) -> None:
    loaded = _loaded("no window, last, two layers", tmp_path)
    assert isinstance(loaded, LoadedModel)
    assert isinstance(loaded.record(_ids(loaded)), Trace)
    assert loaded.size_bytes == sum(4 * t.size for t in random_tensors(2, 4, 2, False).values())


def test_recording_reports_its_progress_and_can_be_stopped_there(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(stage: str, fraction: float) -> None:
        assert stage == "recording"
        raise Stopped

    for name in ("no window, last, two layers", "window, attention, two layers"):
        with pytest.raises(Stopped):
            loaded = _loaded(name, tmp_path)
            loaded.record(_ids(loaded), stop)


@pytest.mark.parametrize("text", ["a\nb", "日本 ab", "  a ", "ä😀"])
def test_the_tokens_of_a_text_joined_are_the_text_whatever_is_unknown(text: str, tmp_path: Path) -> None:
    tokens = _loaded("no window, last, two layers", tmp_path).encode(text)
    assert "".join(token.text for token in tokens) == text
    assert [token.id for token in tokens if token.text == "\n"] in ([], [0])
    assert all((token.start, token.end) == (i, i + 1) for i, token in enumerate(tokens))


def test_words_are_looked_up_without_the_white_space_before_them(tmp_path: Path) -> None:
    words = {"unit": "word", "lowercase": True, "vocabulary": {"the": 1, "cat": 2, ".": 3}}
    folder = write_folder(tmp_path / "words", random_tensors(2, 4, 2, False), None, **words)
    tokens = load_lstm("words", folder, Settings()).encode(" The cat  sat. ")
    assert [(token.id, token.text) for token in tokens] == [(1, " The"), (2, " cat"), (0, "  sat"), (3, ". ")]


def test_ids_outside_the_embedding_are_refused_with_the_range(tmp_path: Path) -> None:
    loaded = _loaded("no window, last, two layers", tmp_path)
    with pytest.raises(UnknownToken, match="ids 0 to 9"):
        loaded.tokens_of((3, 10))
    assert [token.label for token in loaded.tokens_of((1, 0))] == ["a", "⟨unknown⟩"]


def test_a_changed_weight_changes_the_fingerprint(tmp_path: Path) -> None:
    one = write_folder(tmp_path / "one", random_tensors(1, 4, 1, False), None)
    two = write_folder(tmp_path / "two", random_tensors(2, 4, 1, False), None)
    prints = [load_lstm("x", folder, Settings()).fingerprint for folder in (one, two, one)]
    assert prints[0] != prints[1] and prints[0] == prints[2]


def _without(tensors: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    return {key: value for key, value in tensors.items() if key != name}


PLAIN = random_tensors(2, 4, 2, False)


@pytest.mark.parametrize(
    ("tensors", "changed", "error", "says"),
    [
        (_without(PLAIN, "output.bias"), {}, ModelUnavailable, "output.bias"),
        ({**PLAIN, "lstm.weight_ih_l0_reverse": PLAIN["lstm.weight_ih_l0"]}, {}, Unsupported, "one-directional"),
        ({**PLAIN, "lstm.weight_hr_l0": PLAIN["lstm.weight_ih_l0"]}, {}, Unsupported, "projections"),
        (PLAIN, {"readout": {"kind": "mean"}}, Unsupported, "'mean'"),
        (PLAIN, {"readout": {"kind": "attention"}}, ModelUnavailable, "attention"),
        (PLAIN, {"unit": "byte"}, Unsupported, "'byte'"),
        (PLAIN, {"vocabulary": {"a": 99}}, ModelUnavailable, "99"),
        (PLAIN, {"window": {"length": 4}}, ModelUnavailable, "padding_id"),
        (PLAIN, {"format": 2}, ModelUnavailable, "format 2"),
    ],
)
def test_a_folder_that_cannot_be_shown_exactly_is_refused_with_the_reason(
    tensors: dict[str, np.ndarray], changed: dict[str, object], error: type[Exception], says: str, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "odd", tensors, None, **changed)
    with pytest.raises(error, match=says):
        load_lstm("odd", folder, Settings())


def test_a_folder_without_its_files_or_with_pickled_weights_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "odd", PLAIN, None)
    (folder / "model.safetensors").rename(folder / "model.bin")
    with pytest.raises(ModelUnavailable, match=r"model\.safetensors"):
        load_lstm("odd", folder, Settings())
    (folder / "headwater-lstm.json").write_text("[]")
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        load_lstm("odd", folder, Settings())


@pytest.mark.real_model
@pytest.mark.parametrize(("text", "probability"), [("How to mak", 0.9806), ("Why do peopl", 0.9991)])
def test_textgenrnn_completes_common_words(textgenrnn: LoadedLstm, text: str, probability: float) -> None:
    trace = textgenrnn.record(_ids(textgenrnn, text))
    chances = trace.logits(len(text) - 1, len(text))[0].softmax(-1)
    best = int(chances.argmax())
    assert textgenrnn.vocabulary.label(best) == "e"
    # Four digits of what the published network computes.
    assert float(chances[best]) == pytest.approx(probability, abs=1e-4)


@pytest.mark.real_model
def test_textgenrnn_is_the_slow_float64_network(textgenrnn: LoadedLstm, textgenrnn_folder: Path) -> None:
    from safetensors.numpy import load_file

    ids = _ids(textgenrnn, "How to mak")
    expected = run_reference(load_file(textgenrnn_folder / "model.safetensors"), [0] * 30 + list(ids))
    trace = textgenrnn.record(ids)
    np.testing.assert_allclose(trace.logits(9, 10)[0].numpy(), expected.logits, atol=1e-3)
    theirs = np.array([layer[-1].c for layer in expected.steps])
    np.testing.assert_allclose(trace.gates.cell[:, 9].numpy(), theirs, atol=1e-4)


@pytest.mark.real_model
def test_leaving_out_the_padding_would_change_the_prediction_badly(textgenrnn: LoadedLstm) -> None:
    ids = _ids(textgenrnn, "How to mak")
    whole = textgenrnn.record(ids).logits(9, 10)[0].softmax(-1)
    without = LoadedLstm(**{**textgenrnn.__dict__, "window": None}).record(ids).logits(9, 10)[0].softmax(-1)
    target = int(whole.argmax())
    assert float(whole[target] - without[target]) > 0.3


@pytest.mark.real_model
def test_a_newline_is_outside_textgenrnns_vocabulary_and_becomes_padding(textgenrnn: LoadedLstm) -> None:
    tokens = textgenrnn.encode("a\nb")
    assert [token.id for token in tokens][1] == 0
    assert tokens[1].label == "↵"
    assert textgenrnn.record(tuple(token.id for token in tokens)).unknown_positions == [1]


def test_the_config_of_a_fetched_folder_that_is_older_says_how_to_make_it_anew(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "old", PLAIN, None)
    config = json.loads((folder / "headwater-lstm.json").read_text())
    del config["window"]
    (folder / "headwater-lstm.json").write_text(json.dumps(config))
    with pytest.raises(ModelUnavailable, match=r"lacks window.*fetch --again"):
        load_lstm("old", folder, Settings())
