"""Numbers of one text for the comparison of an LSTM with a transformer, in words that each side can be held to.

LSTM: means of the gates, half-lives, and how unlike each other the units' weights of one pair are. Transformer: nothing
is gated away, but a write can point against what the stream already holds. The *share* of an earlier vector w in a
stream x is its projection,

    share = x · w / |w|²        1: held as it was written; 0: nothing of it is left; negative: turned round

which may exceed 1, since later writes can point the same way; the cosine of x and w says how much of x it is. A write
*erases* where it points against the stream that it enters.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from app.analysis.lstm.maps import half_life, seen
from app.analysis.lstm.memory import memory_of, retention
from app.lm.lstm_trace import LstmTrace
from app.lm.trace import Trace


@dataclass(frozen=True)
class PairWeights:
    """The weights that one layer's units give to one source at one reader: as many numbers as there are units."""

    layer: int
    reader: int
    source: int
    least: float
    median: float
    most: float


def stream_share(trace: Trace) -> Float[Tensor, "stream pos"]:
    """How much of each token's embedding the stream holds at each point."""
    first = trace.stream[0]
    return torch.einsum("lpd,pd->lp", trace.stream, first) / first.square().sum(-1)


def stream_cosine(trace: Trace) -> Float[Tensor, "stream pos"]:
    """Cosine of the stream with each token's embedding: how much of its direction is still the embedding's."""
    return torch.nn.functional.cosine_similarity(trace.stream, trace.stream[:1], dim=-1)


def alignment(trace: Trace) -> Float[Tensor, "layer sublayer pos"]:
    """Cosine of each write, attention's (0) and the MLP's (1), with the stream that enters its layer; negative: erases.

    An MLP that reads what attention has written is compared with the stream that holds it already.
    """
    rows = []
    for layer in range(trace.anatomy.n_layers):
        before = trace.stream[layer]
        attention, mlp = trace.attn_write[layer], trace.mlp_write[layer]
        between = before if trace.anatomy.parallel else before + attention
        pairs = ((attention, before), (mlp, between))
        rows.append(torch.stack([torch.nn.functional.cosine_similarity(write, x, dim=-1) for write, x in pairs]))
    return torch.stack(rows)


def transformer_facts(trace: Trace) -> dict[str, object]:
    """Of the transformer: how much of each token's embedding is left, and how many writes erase."""
    with torch.inference_mode():
        towards, cosine = alignment(trace), stream_cosine(trace)
        return {
            "embedding_share": stream_share(trace).tolist(),
            "embedding_cosine": cosine.tolist(),
            "embedding_cosine_median": float(cosine[-1].median()),
            "erasing": float((towards < 0).float().mean()),
            "erasing_by_layer": (towards < 0).float().mean((1, 2)).tolist(),
            "most_erasing": _most_erasing(towards),
        }


def _most_erasing(towards: Float[Tensor, "layer sublayer pos"]) -> dict[str, object]:
    index = int(towards.argmin())
    layer, rest = divmod(index, towards.shape[1] * towards.shape[2])
    sublayer, pos = divmod(rest, towards.shape[2])
    return {
        "layer": layer,
        "sublayer": ("attention", "mlp")[sublayer],
        "pos": pos,
        "cosine": float(towards.flatten()[index]),
    }


def lstm_facts(trace: LstmTrace) -> dict[str, object]:
    """Of the LSTM: per layer the gates' means, the median half-life in steps, and one pair's weights unit by unit."""
    gates = trace.gates
    with torch.inference_mode():
        retained = torch.zeros(trace.n_layers, trace.n_pos, trace.n_pos)
        for run in trace.runs():
            retained[:, run.reader, run.first : run.reader + 1] = retention(memory_of(run))
        lives = half_life(retained, seen(trace))
        pair = _pair(trace)
        medians = [float(layer.median()) for layer in lives]
        return {
            "input_gate": gates.input_gate.mean((1, 2)).tolist(),
            "forget_gate": gates.forget_gate.mean((1, 2)).tolist(),
            "output_gate": gates.output_gate.mean((1, 2)).tolist(),
            "half_life_median": [median if math.isfinite(median) else None for median in medians],
            "pair": None if pair is None else pair.__dict__,
            "n_units": trace.n_units,
            "window": trace.window,
        }


def _pair(trace: LstmTrace) -> PairWeights | None:
    """The last reader's top layer, and the source before the last: neither fresh nor far."""
    if trace.n_pos < 2:
        return None
    reader, layer = trace.n_pos - 1, trace.n_layers - 1
    run = trace.run(reader)
    if len(run.sources) < 2:
        return None
    weights = memory_of(run).weight[layer, -2]
    return PairWeights(
        layer, reader, reader - 1, float(weights.min()), float(weights.median()), float(weights.max())
    )  # fmt: skip
