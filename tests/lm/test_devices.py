"""Devices: `auto` finds one, the CPU is the measure, and a device that disagrees is disabled with the reason."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from app.errors import ModelUnavailable
from app.lm.devices import find_device, logits_on, place
from app.lm.loading import load_transformer
from app.settings import Settings
from tests.lm.test_loading import save
from tests.lm.tiny import BY_NAME, build


class Fake:
    """Stands for a device: computes on the CPU, and adds an error where another device is asked for."""

    def __init__(self, error: float) -> None:
        self.error, self.ran_on = error, []

    def __call__(self, model: nn.Module, device: str) -> Tensor:
        self.ran_on.append(device)
        logits = logits_on(model, "cpu")
        return logits if device == "cpu" else logits + self.error * logits.abs().max()


@pytest.fixture
def model() -> nn.Module:
    return build(BY_NAME["llama"].config())


def test_the_cpu_needs_no_comparison(model: nn.Module) -> None:
    fake = Fake(1.0)
    assert place(model, "cpu", fake).device == "cpu"
    assert fake.ran_on == []


def test_a_device_that_agrees_is_used(model: nn.Module) -> None:
    fake = Fake(1e-6)
    placement = place(model, "cuda", fake)
    assert (placement.device, placement.note) == ("cuda", "")
    assert fake.ran_on == ["cpu", "cuda"]


@pytest.mark.parametrize("error", [0.01, float("nan"), float("inf")])
def test_a_device_that_disagrees_is_refused_where_it_was_asked_for(model: nn.Module, error: float) -> None:
    with pytest.raises(ModelUnavailable, match=r"cuda is disabled for this model, since its logits differ .* by "):
        place(model, "cuda", Fake(error))


def test_auto_stays_on_the_cpu_where_the_device_disagrees_and_says_why(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.lm.devices.find_device", lambda: "cuda")
    placement = place(model, "auto", Fake(0.01))
    assert placement.device == "cpu"
    assert placement.note.startswith("Computed on the CPU: cuda is disabled for this model, since its logits differ")
    assert next(model.parameters()).device.type == "cpu"


def test_auto_takes_the_fastest_device_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert find_device() == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device() == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert find_device() == "cuda"


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens on a machine without this device")
def test_a_device_that_is_not_there_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path)
    with pytest.raises(ModelUnavailable, match=r"cuda is disabled .* cannot run the model .* HEADWATER_DEVICE to cpu"):
        load_transformer("tiny", tmp_path, Settings(device="cuda"))
    monkeypatch.setattr("app.lm.devices.find_device", lambda: "cuda")
    loaded = load_transformer("tiny", tmp_path, Settings(device="auto"))
    assert loaded.device == "cpu"
    assert any("cuda is disabled" in note for note in loaded.anatomy.notes)
