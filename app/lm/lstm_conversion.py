"""textgenrnn's weights as an LSTM folder: safetensors under torch's names, and a short config.

The folder, which any other LSTM of standard form can have as well:

    headwater-lstm.json    unit, vocabulary, window, read-out
    model.safetensors      embedding.weight [vocab, d_embed]
                           lstm.weight_ih_l{n} [4 · hidden, d_in], lstm.weight_hh_l{n} [4 · hidden, hidden]
                           lstm.bias_ih_l{n}, lstm.bias_hh_l{n} [4 · hidden]      gates in torch's order: i, f, g, o
                           attention.weight [d_read]                              where the read-out attends
                           output.weight [vocab, d_read], output.bias [vocab]

The HDF5 file keeps the kernels as CuDNN lays them out: gates i, f, c, o side by side, each input kernel flattened the
other way round, each recurrent kernel transposed, and one bias for the input and one for the recurrent product.
"""

import json
from pathlib import Path

import h5py
import numpy as np
from safetensors.numpy import save_file

from app.errors import ModelUnavailable
from app.lm.catalog import LSTM_CONFIG

N_GATES = 4
PADDING_ID = 0
# The length of the padded texts that the network was trained on; it starts afresh with each.
WINDOW = 40


def convert_textgenrnn(weights: Path, vocabulary: Path, folder: Path) -> None:
    """Writes the LSTM folder of textgenrnn's weight file and vocabulary.

    Raises:
        ModelUnavailable: a file cannot be read, or lacks a weight.
    """
    try:
        with h5py.File(weights) as file:
            tensors = _tensors(file)
        characters: dict[str, int] = json.loads(vocabulary.read_text(encoding="utf-8"))
    except (OSError, KeyError, ValueError) as error:
        raise ModelUnavailable(f"{weights.name} or {vocabulary.name} could not be read: {error}") from error
    save_file(tensors, folder / "model.safetensors")
    config = {
        "format": 1,
        "title": "textgenrnn",
        "unit": "character",
        "vocabulary": characters,
        "unknown_id": PADDING_ID,
        "window": {"length": WINDOW, "padding_id": PADDING_ID},
        "readout": {"kind": "attention"},
    }
    (folder / LSTM_CONFIG).write_text(json.dumps(config, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _tensors(file: h5py.File) -> dict[str, np.ndarray]:
    tensors = {
        "embedding.weight": _read(file, "embedding/embedding/embeddings:0"),
        "attention.weight": _read(file, "attention/attention/attention_W:0")[:, 0],
        "output.weight": _read(file, "output/output/kernel:0").T,
        "output.bias": _read(file, "output/output/bias:0"),
    }
    for index, name in enumerate(("rnn_1", "rnn_2")):
        kernel, recurrent, bias = (
            _read(file, f"{name}/{name}/{part}:0") for part in ("kernel", "recurrent_kernel", "bias")
        )
        # Keras keeps kernels as [d_in, d_out], torch as [d_out, d_in]; CuDNN's recurrent ones are like torch's already.
        tensors[f"lstm.weight_ih_l{index}"] = np.concatenate([input_kernel(gate).T for gate in _gates(kernel)])
        tensors[f"lstm.weight_hh_l{index}"] = np.concatenate(_gates(recurrent))
        tensors[f"lstm.bias_ih_l{index}"], tensors[f"lstm.bias_hh_l{index}"] = np.split(bias, 2)
    return {name: np.ascontiguousarray(tensor, dtype=np.float32) for name, tensor in tensors.items()}


def input_kernel(gate: np.ndarray) -> np.ndarray:
    """One gate's input kernel [d_in, hidden] from CuDNN's order of the same numbers."""
    return gate.T.reshape(gate.shape, order="F")


def _gates(kernel: np.ndarray) -> list[np.ndarray]:
    return np.split(kernel, N_GATES, axis=1)


def _read(file: h5py.File, path: str) -> np.ndarray:
    return np.asarray(file[path])
