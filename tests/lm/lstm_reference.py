"""LSTMs in float64 numpy, one number at a time, sharing no code with the program; and tiny folders to load."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

LETTERS = "abcdefgh "


@dataclass(frozen=True)
class Step:
    """Gates and states of one layer at one step."""

    i: np.ndarray
    f: np.ndarray
    g: np.ndarray
    o: np.ndarray
    c: np.ndarray
    h: np.ndarray


@dataclass(frozen=True)
class Reference:
    """A run over `ids`: steps[layer][step], the read-out's weights, what it pooled, and logits after the last id."""

    steps: list[list[Step]]
    embed: np.ndarray
    weights: np.ndarray
    pooled: np.ndarray
    logits: np.ndarray


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def run_reference(tensors: Mapping[str, np.ndarray], ids: list[int]) -> Reference:
    """The network over these ids, from zeros; they hold any padding already."""
    w = {name: np.asarray(tensor, dtype=np.float64) for name, tensor in tensors.items()}
    n_layers = sum(name.startswith("lstm.weight_hh_l") for name in w)
    embed = np.array([w["embedding.weight"][token] for token in ids])
    xs, steps = list(embed), []
    for layer in range(n_layers):
        w_x, w_h = w[f"lstm.weight_ih_l{layer}"], w[f"lstm.weight_hh_l{layer}"]
        b = w[f"lstm.bias_ih_l{layer}"] + w[f"lstm.bias_hh_l{layer}"]
        n = w_h.shape[1]
        h, c, own = np.zeros(n), np.zeros(n), []
        for x in xs:
            a = np.array([row_x @ x + row_h @ h + b_j for row_x, row_h, b_j in zip(w_x, w_h, b, strict=True)])
            i, f, g, o = sigmoid(a[:n]), sigmoid(a[n : 2 * n]), np.tanh(a[2 * n : 3 * n]), sigmoid(a[3 * n :])
            c = f * c + i * g
            h = o * np.tanh(c)
            own.append(Step(i, f, g, o, c, h))
        steps.append(own)
        xs = [step.h for step in own]
    if "attention.weight" in w:
        read = np.array([np.concatenate([embed[s], *(layer[s].h for layer in steps)]) for s in range(len(ids))])
        scores = np.exp(read @ w["attention.weight"] - (read @ w["attention.weight"]).max())
        weights = scores / scores.sum()
    else:
        read = np.array([step.h for step in steps[-1]])
        weights = np.eye(len(ids))[-1]
    pooled = sum(weight * row for weight, row in zip(weights, read, strict=True))
    return Reference(steps, embed, weights, pooled, w["output.weight"] @ pooled + w["output.bias"])


def random_tensors(seed: int, units: int, layers: int, attention: bool, embed: int = 4) -> dict[str, np.ndarray]:
    """Weights of a small network with the names of a folder; large enough for gates to open and close."""
    rng = np.random.default_rng(seed)
    vocab = len(LETTERS) + 1
    d_read = embed + layers * units if attention else units
    shapes: dict[str, tuple[int, ...]] = {
        "embedding.weight": (vocab, embed), "output.weight": (vocab, d_read), "output.bias": (vocab,),
    }  # fmt: skip
    if attention:
        shapes["attention.weight"] = (d_read,)
    for layer in range(layers):
        shapes[f"lstm.weight_ih_l{layer}"] = (4 * units, embed if layer == 0 else units)
        shapes[f"lstm.weight_hh_l{layer}"] = (4 * units, units)
        shapes[f"lstm.bias_ih_l{layer}"] = shapes[f"lstm.bias_hh_l{layer}"] = (4 * units,)
    return {name: rng.normal(0, 1.0, shape).astype(np.float32) for name, shape in shapes.items()}


def write_folder(folder: Path, tensors: Mapping[str, np.ndarray], window_length: int | None, **changed: Any) -> Path:
    """An LSTM folder over the letters a to h and the space; 0 is padding and unknown."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(dict(tensors), folder / "model.safetensors")
    config = {
        "format": 1,
        "title": "tiny",
        "unit": "character",
        "vocabulary": {letter: index + 1 for index, letter in enumerate(LETTERS)},
        "unknown_id": 0,
        "window": None if window_length is None else {"length": window_length, "padding_id": 0},
        "readout": {"kind": "attention" if "attention.weight" in tensors else "last"},
        **changed,
    }
    (folder / "headwater-lstm.json").write_text(json.dumps(config))
    return folder


# (seed, units, layers, attention, window): with and without a window, each read-out, one to three layers.
NETWORKS = {
    "window, attention, two layers": (1, 5, 2, True, 6),
    "no window, last, two layers": (2, 4, 2, False, None),
    "no window, attention, one layer": (3, 3, 1, True, None),
    "window, last, three layers": (4, 4, 3, False, 4),
}


def steps_of(ids: list[int], reader: int, window: int | None) -> list[int]:
    """What the run of a reader reads, padding included."""
    if window is None:
        return ids[: reader + 1]
    own = ids[max(0, reader + 1 - window) : reader + 1]
    return [0] * (window - len(own)) + own
