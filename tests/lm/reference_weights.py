"""Raw weights by name, for the reference decoders."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.lm.references import Array, Linear, Map, layer_norm, rms_norm


class Weights:
    """Raw weights by name, in float64, below a prefix."""

    def __init__(self, raw: Mapping[str, Any], prefix: str = "") -> None:
        self.raw, self.prefix = raw, prefix

    def below(self, prefix: str) -> "Weights":
        return Weights(self.raw, f"{self.prefix}{prefix}.")

    def __call__(self, name: str) -> Array:
        return np.asarray(self.raw[self.prefix + name].double().numpy())

    def has(self, name: str) -> bool:
        return self.prefix + name in self.raw

    def linear(self, name: str, transposed: bool = True) -> Linear:
        weight = self(f"{name}.weight")
        bias = self(f"{name}.bias") if self.has(f"{name}.bias") else None
        return Linear(weight.T if transposed else weight, bias)

    def layer_norm(self, name: str, eps: float) -> Map:
        return layer_norm(self(f"{name}.weight"), self(f"{name}.bias") if self.has(f"{name}.bias") else 0.0, eps)

    def rms_norm(self, name: str, eps: float, offset: float = 0.0) -> Map:
        return rms_norm(self(f"{name}.weight") + offset, eps)


def table(w: Weights, name: str) -> Callable[[Array], Array]:
    return lambda ids: w(name)[ids]


def head(w: Weights) -> Linear:
    return w.linear("lm_head")


def theta(config: Any, layer: int = 0) -> float:
    """The base of the rotation; some families have one for layers with a window and one for the others."""
    parameters = config.rope_parameters
    return float(parameters.get("rope_theta") or parameters[config.layer_types[layer]]["rope_theta"])
