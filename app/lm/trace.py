"""The trace: one recorded forward pass, linear in prompt length, and what can be replayed from it exactly."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from app.errors import OutOfRange, Unsupported
from app.lm.anatomy import Anatomy, Block
from app.lm.recorder import Recording

# Rows of a pattern are computed in blocks of at most this many bytes, so that a long prompt needs little at a time and
# a block stays in the processor's cache.
BLOCK_BYTES = 8 * 2**20
# Whole patterns that a trace keeps, most recent first: enough to move between neighbouring heads without a replay.
PATTERN_CACHE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class PatternRows:
    """Some rows of one layer's pattern; keys stop at the last query, since none can see further."""

    start: int
    pattern: Float[Tensor, "head query_pos key_pos"]
    z: Float[Tensor, "query_pos head d_head"]

    @property
    def end(self) -> int:
        """The position after the last query."""
        return self.start + self.pattern.shape[1]


@dataclass(eq=False)
class Trace:
    """One forward pass.

    `stream[l]` enters layer l and `stream[n_layers]` enters the final norm. `attn_write` and `mlp_write` are what was
    added to the stream, multipliers and post-norms included. Everything is float32 on the model's device.
    """

    token_ids: tuple[int, ...]
    anatomy: Anatomy
    stream: Float[Tensor, "stream pos d_model"]
    attn_write: Float[Tensor, "layer pos d_model"]
    mlp_write: Float[Tensor, "layer pos d_model"]
    embed: Float[Tensor, "pos d_model"]
    pos_embed: Float[Tensor, "pos d_model"] | None
    recording: Recording
    _patterns: "OrderedDict[int, Tensor]" = field(default_factory=OrderedDict, repr=False)

    @staticmethod
    def of(anatomy: Anatomy, token_ids: tuple[int, ...], recording: Recording) -> "Trace":
        """The trace of a finished recording."""
        assert recording.stream is not None and recording.attn_write is not None
        assert recording.mlp_write is not None and recording.embed is not None
        embed = recording.embed.float() * anatomy.embed_scale
        pos = None if recording.pos_embed is None else recording.pos_embed.float().expand_as(embed)
        return Trace(
            token_ids, anatomy, recording.stream, recording.attn_write, recording.mlp_write, embed, pos, recording
        )

    @property
    def n_pos(self) -> int:
        """Number of tokens."""
        return len(self.token_ids)

    @property
    def model_dtype(self) -> torch.dtype:
        """The number type that the model computes in; what is recorded is kept in float32."""
        weight = self.anatomy.lm_head.weight
        assert isinstance(weight, Tensor)
        return weight.dtype

    @property
    def size_bytes(self) -> int:
        """Memory that the trace holds, its pattern cache at its largest included."""
        tensors = [self.stream, self.attn_write, self.mlp_write, self.embed]
        for kept in (self.recording.q, self.recording.k, self.recording.v, self.recording.z):
            tensors += kept.values()
        return sum(t.numel() * t.element_size() for t in tensors) + PATTERN_CACHE_BYTES

    def block(self, layer: int) -> Block:
        """The anatomy of a layer that has attention heads.

        Raises:
            OutOfRange: there is no such layer.
            Unsupported: the layer has no softmax attention.
        """
        n_layers = self.anatomy.n_layers
        if not 0 <= layer < n_layers:
            raise OutOfRange(f"There is no layer {layer}; layers run from 0 to {n_layers - 1}.", n_layers=n_layers)
        block = self.anatomy.blocks[layer]
        if block.attention is None:
            raise Unsupported(f"Layer {layer} has no attention pattern: {block.unsupported}.", layer=layer)
        return block

    @property
    def attention_layers(self) -> tuple[int, ...]:
        """Layers that have a softmax pattern."""
        return tuple(block.index for block in self.anatomy.blocks if block.attention is not None)

    def q(self, layer: int) -> Float[Tensor, "head pos d_head"]:
        """Queries as attention used them: after biases, norms and rotation."""
        self.block(layer)
        return self.recording.q[layer]

    def k(self, layer: int) -> Float[Tensor, "kv_head pos d_head"]:
        """Keys as attention used them."""
        self.block(layer)
        return self.recording.k[layer]

    def v(self, layer: int) -> Float[Tensor, "kv_head pos d_head"]:
        """Values as attention used them, value bias included."""
        self.block(layer)
        return self.recording.v[layer]

    def z(self, layer: int) -> Float[Tensor, "pos head d_head"]:
        """What the model fed to W_O: every head's pattern times values."""
        self.block(layer)
        return self.recording.z[layer].float()

    def reader_scale(self, layer: int) -> Float[Tensor, " pos"]:
        """The factor that a norm after attention applies at each reader; 1 where there is no such norm."""
        scale = self.recording.reader_scale.get(layer)
        return torch.ones(self.n_pos, device=self.stream.device) if scale is None else scale

    def seen(self, layer: int) -> Bool[Tensor, "query_pos key_pos"]:
        """Which sources each reader can see in this layer: causality and any window."""
        self.block(layer)
        return self.recording.replay[layer].mask.rows(0, self.n_pos, self.stream.device)

    def pattern_rows(self, layer: int, start: int, end: int) -> PatternRows:
        """The pattern of queries start..end−1 of a layer, replayed by the model's own function."""
        self.block(layer)
        recording = self.recording
        q, k, v = recording.q[layer][:, start:end], recording.k[layer][:, :end], recording.v[layer][:, :end]
        with torch.inference_mode():
            z, pattern = recording.replay[layer].rows(q, k, v, start)
        return PatternRows(start, pattern, z)

    def pattern_blocks(self, layer: int) -> Iterator[PatternRows]:
        """All rows of a layer's pattern, in blocks of bounded size from the first query to the last."""
        block = self.block(layer)
        rows = max(1, BLOCK_BYTES // (4 * block.n_heads * self.n_pos))
        for start in range(0, self.n_pos, rows):
            yield self.pattern_rows(layer, start, min(start + rows, self.n_pos))

    def pattern(self, layer: int) -> Float[Tensor, "head query_pos key_pos"]:
        """The whole pattern of one layer; masked entries are exactly 0. Kept in a small cache."""
        if layer in self._patterns:
            self._patterns.move_to_end(layer)
            return self._patterns[layer]
        block = self.block(layer)
        whole = torch.zeros(block.n_heads, self.n_pos, self.n_pos, device=self.stream.device)
        for rows in self.pattern_blocks(layer):
            whole[:, rows.start : rows.end, : rows.end] = rows.pattern
        self._patterns[layer] = whole
        while len(self._patterns) > 1 and sum(p.numel() * 4 for p in self._patterns.values()) > PATTERN_CACHE_BYTES:
            self._patterns.popitem(last=False)
        return whole
