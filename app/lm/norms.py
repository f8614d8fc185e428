"""Normalisation layers, read from a model's modules and proved against them."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from app.errors import Unsupported

# Under which names norm modules keep their eps, and those that keep it nowhere.
EPS_NAMES = ("variance_epsilon", "eps", "epsilon")
FIXED_EPS = {"OlmoLayerNorm": 1e-5}


@dataclass(frozen=True)
class Norm:
    """A layer norm or an RMS norm in the form that sums need: statistics apart from the linear rest.

    `norm(x) = centre(x) · inverse_scale(x) · gain + bias`; with `inverse_scale` frozen it is linear in x.
    """

    kind: Literal["rms", "layer"]
    eps: float
    gain: Float[Tensor, " d_model"] | None
    bias: Float[Tensor, " d_model"] | None

    def centre(self, x: Float[Tensor, "*pos d_model"]) -> Float[Tensor, "*pos d_model"]:
        """x minus its mean over features for a layer norm; x itself for an RMS norm."""
        return x - x.mean(-1, keepdim=True) if self.kind == "layer" else x

    def inverse_scale(self, x: Float[Tensor, "*pos d_model"]) -> Float[Tensor, "*pos 1"]:
        """1 / sqrt(mean square of the centred x + eps): the one factor of the norm that is not linear."""
        return torch.rsqrt(self.centre(x).square().mean(-1, keepdim=True) + self.eps)

    def linear(
        self, x: Float[Tensor, "*pos d_model"], inverse_scale: Float[Tensor, "*#pos 1"]
    ) -> Float[Tensor, "*pos d_model"]:
        """The norm of x with a given scale and without its bias: what one summand contributes."""
        scaled = self.centre(x) * inverse_scale
        return scaled if self.gain is None else scaled * self.gain

    def __call__(self, x: Float[Tensor, "*pos d_model"]) -> Float[Tensor, "*pos d_model"]:
        """The norm with x's own statistics."""
        out = self.linear(x, self.inverse_scale(x))
        return out if self.bias is None else out + self.bias

    def dual(self, u: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        """The direction d with `linear(x, s) · u = s · (x · d)`: gain and centring moved from x to u."""
        scaled = u if self.gain is None else u * self.gain
        return scaled - scaled.mean(-1, keepdim=True) if self.kind == "layer" else scaled


def read_norm(module: nn.Module, gain_offset: float = 0.0) -> Norm:
    """The `Norm` that computes what `module` computes.

    `gain_offset` is 1 where the module multiplies by 1 + weight (Gemma).

    Raises:
        Unsupported: the module is no norm of a known form, or gives other numbers than the form read from it.
    """
    name = type(module).__name__
    eps = next((float(getattr(module, a)) for a in EPS_NAMES if hasattr(module, a)), FIXED_EPS.get(name))
    if eps is None or "norm" not in name.lower():
        raise Unsupported(f"{name} is not a norm that this program knows; the model cannot be taken apart exactly.")
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    gain = None if weight is None else weight.detach() + gain_offset if gain_offset else weight.detach()
    norm = Norm("rms" if "rms" in name.lower() else "layer", eps, gain, None if bias is None else bias.detach())
    prove_norm(norm, module)
    return norm


def prove_norm(norm: Norm, module: nn.Module) -> None:
    """Compares the norm with its module on random input that is not centred, half of it so small that eps matters.

    Raises:
        Unsupported: they differ by more than rounding.
    """
    reference = next((p for p in module.parameters()), None)
    width = reference.shape[-1] if reference is not None else int(getattr(module, "normalized_shape", (16,))[0])
    device = reference.device if reference is not None else torch.device("cpu")
    dtype = reference.dtype if reference is not None else torch.float32
    x = (torch.randn(4, width, generator=torch.Generator().manual_seed(0)) * 3 + 1).to(device=device, dtype=dtype)
    x[2:] *= 1e-3
    with torch.no_grad():
        expected, got = module(x).float(), norm(x).float()
    worst = float(((expected - got).abs().amax(-1) / expected.abs().amax(-1).clamp_min(1e-9)).max())
    # One rounding of the widest intermediate in the model's number type, with room for another order of summation.
    allowed = 32 * torch.finfo(dtype).eps
    if not worst <= allowed:
        raise Unsupported(
            f"{type(module).__name__} gives other numbers than the norm read from it (relative error {worst:.2g}, "
            f"allowed {allowed:.2g}); the model cannot be taken apart exactly.",
            worst_rel=worst,
            tolerance=allowed,
        )
