"""Decoders written a second time, slowly and in float64, to be compared with what the program records.

Only numpy, loops and the raw weights; nothing of the program and nothing of the library is used. A decoder is a list of
`Block`s (tests/lm/reference_families.py builds them from the weights' names). Row vectors; a matrix is [in, out].
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
Map = Callable[[Array], Array]


def same(x: Array) -> Array:
    return x


@dataclass
class Linear:
    """x W + b."""

    weight: Array
    bias: Array | None = None

    def __call__(self, x: Array) -> Array:
        return x @ self.weight + (0 if self.bias is None else self.bias)

    def columns(self, start: int, end: int) -> "Linear":
        return Linear(self.weight[:, start:end], None if self.bias is None else self.bias[start:end])

    def chosen(self, columns: Sequence[int]) -> "Linear":
        index = np.asarray(columns)
        return Linear(self.weight[:, index], None if self.bias is None else self.bias[index])


@dataclass
class Norm:
    """gain · (x − mean) / sqrt(variance + eps) + bias; without the mean where it is not `centred`."""

    gain: Array | float
    bias: Array | float
    eps: float
    centred: bool

    def __call__(self, x: Array) -> Array:
        return self.frozen(x, x) + self.bias

    def frozen(self, x: Array, at: Array) -> Array:
        """The linear part, with the scale that `at` has."""
        moved, of = (x - x.mean(-1, keepdims=True), at - at.mean(-1, keepdims=True)) if self.centred else (x, at)
        return moved / np.sqrt((of**2).mean(-1, keepdims=True) + self.eps) * self.gain


def rms_norm(gain: Array, eps: float) -> Norm:
    return Norm(gain, 0.0, eps, centred=False)


def layer_norm(gain: Array | float, bias: Array | float, eps: float) -> Norm:
    return Norm(gain, bias, eps, centred=True)


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def relu_squared(x: Array) -> Array:
    return np.maximum(x, 0) ** 2


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return e / e.sum()


def two_layers(up: Linear, down: Linear, activation: Map) -> Map:
    return lambda x: down(activation(up(x)))


def gated(gate: Linear, up: Linear, down: Linear, activation: Map) -> Map:
    return lambda x: down(activation(gate(x)) * up(x))


@dataclass
class Rotation:
    """Rotary positions on the first `width` entries of a head: entry i is paired with i + width/2, or with its
    neighbour where `pairs` is set."""

    width: int
    theta: float
    pairs: bool = False

    def __call__(self, x: Array, position: int) -> Array:
        out = x.copy()
        half = self.width // 2
        for i in range(half):
            angle = position * self.theta ** (-2 * i / self.width)
            a, b = (2 * i, 2 * i + 1) if self.pairs else (i, i + half)
            out[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
            out[b] = x[b] * math.cos(angle) + x[a] * math.sin(angle)
        return out


@dataclass
class Block:
    """One layer. `norm_q` and `norm_k` act on [pos, head, d_head]; `slopes` are ALiBi's, added times the key's
    position after scaling; `sum_norm_1` and `sum_norm_2` replace the stream after each addition."""

    q: Linear
    k: Linear
    v: Map
    o: Linear
    heads: int
    kv_heads: int
    mlp: Map
    norm_1: Map = same
    norm_2: Map = same
    post_norm_1: Map = same
    post_norm_2: Map = same
    sum_norm_1: Map = same
    sum_norm_2: Map = same
    scaling: float | None = None
    norm_q: Map = same
    norm_k: Map = same
    norm_after_rotation: bool = False
    rotation: Rotation | None = None
    slopes: Array | None = None
    clip: float | None = None
    cap: float | None = None
    window: int | None = None
    sinks: Array | None = None
    parallel: bool = False
    multiplier: float = 1.0


@dataclass
class Decoder:
    """A model. `embed` and `pos_embed` give one row for each token; `unembed` acts on the normed last stream."""

    blocks: list[Block]
    embed: Callable[[Array], Array]
    final_norm: Map
    unembed: Map
    pos_embed: Callable[[int], Array] | None = None
    logit_scale: float = 1.0
    logit_cap: float | None = None


@dataclass
class Run:
    """Everything that a decoder computes on one prompt. Head outputs are what each head adds to the stream."""

    streams: list[Array] = field(default_factory=list)
    scores: list[Array] = field(default_factory=list)
    patterns: list[Array] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    head_outputs: list[Array] = field(default_factory=list)
    messages: list[Array] = field(default_factory=list)
    attn_writes: list[Array] = field(default_factory=list)
    mlp_writes: list[Array] = field(default_factory=list)
    uncapped: Array = field(default_factory=lambda: np.zeros(0))
    logits: Array = field(default_factory=lambda: np.zeros(0))


def run(decoder: Decoder, ids: Sequence[int]) -> Run:
    """The forward pass."""
    out = Run()
    x = decoder.embed(np.asarray(ids))
    if decoder.pos_embed is not None:
        x = x + decoder.pos_embed(len(ids))
    for block in decoder.blocks:
        out.streams.append(x)
        attention = _attend(block, block.norm_1(x), out)
        middle = block.sum_norm_1(x + attention)
        mlp = block.post_norm_2(block.mlp(block.norm_2(x if block.parallel else middle))) * block.multiplier
        x = block.sum_norm_2(middle + mlp)
        out.attn_writes.append(attention)
        out.mlp_writes.append(mlp)
    out.streams.append(x)
    out.uncapped = decoder.unembed(decoder.final_norm(x)) * decoder.logit_scale
    cap = decoder.logit_cap
    out.logits = out.uncapped if cap is None else cap * np.tanh(out.uncapped / cap)
    return out


def _attend(block: Block, x: Array, out: Run) -> Array:
    n, heads, kv_heads = len(x), block.heads, block.kv_heads
    q, k, v = block.q(x), block.k(x), block.v(x)
    if block.clip is not None:
        q, k, v = (np.clip(each, -block.clip, block.clip) for each in (q, k, v))
    q, k, v = q.reshape(n, heads, -1), k.reshape(n, kv_heads, -1), v.reshape(n, kv_heads, -1)
    if not block.norm_after_rotation:
        q, k = block.norm_q(q), block.norm_k(k)
    if block.rotation is not None:
        q = np.array([[block.rotation(q[i, h], i) for h in range(heads)] for i in range(n)])
        k = np.array([[block.rotation(k[i, h], i) for h in range(kv_heads)] for i in range(n)])
    if block.norm_after_rotation:
        q, k = block.norm_q(q), block.norm_k(k)
    d_head = q.shape[-1]
    scaling = d_head**-0.5 if block.scaling is None else block.scaling
    pattern, scores = np.zeros((heads, n, n)), np.full((heads, n, n), -np.inf)
    by_head = np.zeros((heads, n, block.o.weight.shape[1]))
    messages = np.zeros_like(by_head)
    for h in range(heads):
        shared = h // (heads // kv_heads)
        for i in range(n):
            seen = [j for j in range(i + 1) if block.window is None or i - j < block.window]
            s = np.array([q[i, h] @ k[j, shared] * scaling for j in seen])
            if block.cap is not None:
                s = block.cap * np.tanh(s / block.cap)
            if block.slopes is not None:
                s = s + block.slopes[h] * np.array(seen)
            scores[h, i, seen] = s
            with_sink = s if block.sinks is None else np.append(s, block.sinks[h])
            pattern[h, i, seen] = softmax(with_sink)[: len(seen)]
        slice_of_o = block.o.weight[h * d_head : (h + 1) * d_head]
        messages[h] = v[:, shared] @ slice_of_o
        by_head[h] = pattern[h] @ messages[h]
    before = by_head.sum(0) + (0 if block.o.bias is None else block.o.bias)
    written = block.post_norm_1(before) * block.multiplier
    out.patterns.append(pattern)
    out.scores.append(scores)
    out.values.append(v.transpose(1, 0, 2))
    out.head_outputs.append(by_head * _post_scale(block, before) * block.multiplier)
    out.messages.append(messages)
    return written


def _post_scale(block: Block, before: Array) -> Array:
    """What the norm after attention multiplies each reader's row by, read off the norm itself (it has no bias)."""
    return np.ones_like(before) if block.post_norm_1 is same else block.post_norm_1(before) / before
