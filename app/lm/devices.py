"""The device that a model runs on: chosen or found, and kept only if it computes what the CPU computes."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from app.errors import ModelUnavailable

PROBE_LENGTH = 16
# Another order of summation moves logits by about 1e-5 of the largest; multiplication in fewer bits than float32 (which
# some devices do silently) by 1e-3 and more.
FLOAT32_TOLERANCE = 5e-4

Run = Callable[[nn.Module, str], Tensor]


@dataclass(frozen=True)
class Placement:
    """Where a model is, and why it is not where it could have been; the note is empty where there is nothing to say."""

    device: str
    note: str = ""


def find_device() -> str:
    """The fastest device that torch can use here."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def logits_on(model: nn.Module, device: str) -> Float[Tensor, "pos vocab"]:
    """Moves the model to a device and runs a fixed probe there; the logits come back as float32 on the CPU."""
    model.to(device)
    rows = model.get_input_embeddings().weight.shape[0]  # type: ignore[operator]
    # Multiples of a prime: tokens far apart, the same for every run.
    ids = torch.arange(1, PROBE_LENGTH + 1, device=device) * 7919 % rows
    with torch.inference_mode():
        logits: Tensor = model(input_ids=ids[None], use_cache=False).logits[0].float().cpu()
    return logits


def place(model: nn.Module, wanted: str, run: Run = logits_on) -> Placement:
    """Moves a model, which is on the CPU, to the wanted device, or to the best one for `auto`.

    A device other than the CPU runs a probe and is compared with it. One that disagrees, or cannot run the model, is
    not used: `auto` then stays on the CPU and says why.

    Raises:
        ModelUnavailable: a device that was asked for by name disagrees with the CPU or cannot run the model.
    """
    device = find_device() if wanted == "auto" else wanted
    if device == "cpu":
        return Placement("cpu")
    reason = _disagreement(model, device, run)
    if not reason:
        return Placement(device)
    model.to("cpu")
    if wanted == "auto":
        return Placement("cpu", f"Computed on the CPU: {device} is disabled for this model, since {reason}.")
    raise ModelUnavailable(
        f"The device {device} is disabled for this model, since {reason}. Set HEADWATER_DEVICE to cpu or auto.",
        device=device,
    )


def _disagreement(model: nn.Module, device: str, run: Run) -> str:
    """Why a device cannot be used; empty if it agrees with the CPU."""
    expected = run(model, "cpu")
    try:
        got = run(model, device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).strip().split("\n")[0][:200]
        return f"it cannot run the model ({first})"
    scale = expected.abs().amax(-1).clamp_min(1e-30)
    # NaN compares as false with everything, and must not pass.
    worst = float(((got - expected).abs().amax(-1) / scale).nan_to_num(torch.inf).max())
    dtype = next(model.parameters()).dtype
    allowed = max(FLOAT32_TOLERANCE, 16 * torch.finfo(dtype).eps)
    if worst <= allowed:
        return ""
    return f"its logits differ from the CPU's by {worst:.2g} of the largest, and {allowed:.2g} is allowed"
