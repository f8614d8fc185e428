"""Anatomy: where, in one particular model, the quantities of the design are found.

A `Family` (see `families`) is the short description of an architecture; `read_anatomy` applies it to a loaded model
and gives modules, weights and numbers. Everything else in the program speaks anatomy and never module names.

What is *written to the stream* by a sub-layer is `multiplier · post_norm(linear output)`. The heads' share of it:

    write_i = r_i · ( Σ_h z_i^h W_O^h + b_O ),      r_i = the post-norm's inverse scale at reader i, or 1,

where W_O and b_O here already contain the post-norm's gain and the multiplier ("effective" weights). A post-norm that
centres or has a bias contributes the centring to W_O as well, and its bias as a row of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor, nn

from app.errors import Unsupported
from app.lm.norms import Norm
from app.lm.own_attention import OwnAttention


@dataclass(frozen=True, eq=False)
class Block:
    """One layer.

    `attention` is the module that calls the attention function; None, with the reason in `unsupported`, where a layer
    has no softmax attention. `output_projection` is W_O's module; `attention_write` and `mlp_write` are the modules
    whose output, times the multiplier, is added to the stream.
    """

    index: int
    layer: nn.Module
    attention: nn.Module | None
    output_projection: nn.Module | None
    attention_write: nn.Module
    mlp_write: nn.Module
    attention_norm: Norm | None
    attention_post_norm: Norm | None
    mlp_norm: Norm | None
    mlp_post_norm: Norm | None
    n_heads: int
    n_kv_heads: int
    d_head: int
    multiplier: float = 1.0
    window: int | None = None
    has_rotary: bool = False
    has_qk_norm: bool = False
    own_attention: OwnAttention | None = None
    sum_norms: tuple[Norm, Norm] | None = None
    unsupported: str = ""

    @cached_property
    def W_O(self) -> Float[Tensor, "head d_head d_model"]:
        """The effective output weights of every head: post-norm gain and multiplier included, post-norm scale not."""
        weight, _ = linear_parts(self._projection)
        weight = weight.float() * self.multiplier if self.multiplier != 1.0 else weight.float()
        if self.attention_post_norm is not None:
            ones = torch.ones(weight.shape[0], 1, device=weight.device)
            weight = self.attention_post_norm.linear(weight, ones)
        return weight.reshape(self.n_heads, self.d_head, weight.shape[-1])

    @cached_property
    def b_O(self) -> Float[Tensor, " d_model"] | None:
        """The effective output bias, which belongs to no head; scaled by the reader like the heads; None if absent."""
        _, bias = linear_parts(self._projection)
        if bias is None:
            return None
        bias = bias.float() * self.multiplier if self.multiplier != 1.0 else bias.float()
        if self.attention_post_norm is not None:
            bias = self.attention_post_norm.linear(bias, torch.ones(1, device=bias.device))
        return bias

    @cached_property
    def post_norm_bias(self) -> Float[Tensor, " d_model"] | None:
        """The bias of the norm after attention, added whatever the heads do; None if there is none."""
        norm = self.attention_post_norm
        return None if norm is None or norm.bias is None else norm.bias.float() * self.multiplier

    @cached_property
    def gram(self) -> Float[Tensor, "head d_head d_head"]:
        """W_O W_Oᵀ of every head: message norms without messages, |v W_O|² = v (W_O W_Oᵀ) vᵀ."""
        return torch.einsum("hdm,hem->hde", self.W_O, self.W_O)

    @property
    def sinks(self) -> Float[Tensor, " head"] | None:
        """Learned scores that compete in every row of a pattern, so that rows sum to less than 1; None if absent."""
        sinks = getattr(self.attention, "sinks", None)
        return sinks.detach().float() if isinstance(sinks, Tensor) else None

    @property
    def group_size(self) -> int:
        """Query heads that share one key/value head: head h reads kv head h // group_size."""
        return self.n_heads // self.n_kv_heads

    @property
    def _projection(self) -> nn.Module:
        if self.output_projection is None:
            raise Unsupported(f"Layer {self.index} has no attention heads: {self.unsupported}.", layer=self.index)
        return self.output_projection


@dataclass(frozen=True, eq=False)
class Anatomy:
    """A model taken apart: its blocks, and what stands before and after them.

    `embed` is the module whose output, times `embed_scale`, enters the stream: the embedding table, or a norm or a
    projection right after it.
    """

    family: str
    blocks: tuple[Block, ...]
    embed: nn.Module
    embed_scale: float
    pos_embed: nn.Module | None
    positions: str
    parallel: bool
    final_norm: Norm | None
    final_norm_module: nn.Module | None
    unembed_projection: nn.Module | None
    lm_head: nn.Module
    logit_scale: float
    logit_cap: float | None
    d_model: int
    vocab_size: int
    max_positions: int
    records_with: str = "sdpa"
    notes: tuple[str, ...] = ()

    @property
    def n_layers(self) -> int:
        """Number of blocks."""
        return len(self.blocks)

    @property
    def is_additive(self) -> bool:
        """Whether the last stream is the sum of all writes; not where norms replace the stream in between."""
        return all(block.sum_norms is None for block in self.blocks)

    def to_json(self) -> Mapping[str, object]:
        """What the page and the API tell about the model's shape."""
        first = next((block for block in self.blocks if block.attention is not None), self.blocks[0])
        return {
            "family": self.family,
            "n_layers": self.n_layers,
            "n_heads": first.n_heads,
            "n_kv_heads": first.n_kv_heads,
            "d_model": self.d_model,
            "d_head": first.d_head,
            "vocab_size": self.vocab_size,
            "positions": self.positions,
            "parallel": self.parallel,
            "norm": "none" if self.final_norm is None else self.final_norm.kind,
            "post_norms": first.attention_post_norm is not None,
            "normalises_sum": not self.is_additive,
            "qk_norm": first.has_qk_norm,
            "sinks": first.sinks is not None,
            "windows": [block.window for block in self.blocks],
            "rotary_layers": [block.index for block in self.blocks if block.has_rotary],
            "embed_scale": self.embed_scale,
            "multiplier": first.multiplier,
            "logit_scale": self.logit_scale,
            "logit_cap": self.logit_cap,
            "attention_function": self.records_with,
            "unsupported_layers": {str(b.index): b.unsupported for b in self.blocks if b.unsupported},
            "notes": list(self.notes),
        }

    def unembed_direction(self, token_id: int) -> Float[Tensor, " d_model"]:
        """The column of W_U for one token, before the logit scale, through any projection after the final norm."""
        column = self.lm_head.weight[token_id].detach().float()  # type: ignore[index]
        if self.unembed_projection is not None:
            weight, _ = linear_parts(self.unembed_projection)
            column = weight.float() @ column
        return column

    def unembed(self, normed: Float[Tensor, "*pos d_model"]) -> Float[Tensor, "*pos vocab"]:
        """Logits of a stream that has passed the final norm: projection, W_U, bias, scale and soft cap."""
        hidden = normed if self.unembed_projection is None else self.unembed_projection(normed)
        return self.cap(self.lm_head(hidden) * self.logit_scale if self.logit_scale != 1.0 else self.lm_head(hidden))

    def cap(self, logits: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """The model's soft cap, cap · tanh(logit / cap), or the logits themselves where it has none."""
        return logits if self.logit_cap is None else torch.tanh(logits / self.logit_cap) * self.logit_cap

    def logits(self, stream: Float[Tensor, "*pos d_model"]) -> Float[Tensor, "*pos vocab"]:
        """What a stream would predict: the final norm with that stream's own statistics, then the unembedding."""
        normed = stream if self.final_norm_module is None else self.final_norm_module(stream)
        return self.unembed(normed)


def linear_parts(module: nn.Module) -> tuple[Float[Tensor, "d_in d_out"], Float[Tensor, " d_out"] | None]:
    """Weight as [d_in, d_out] and bias of a linear module: nn.Linear stores the transpose, GPT-2's Conv1D does not."""
    weight, bias = module.weight, getattr(module, "bias", None)
    if not isinstance(weight, Tensor) or weight.ndim != 2 or not weight.is_floating_point():
        raise Unsupported(
            f"{type(module).__name__} is no linear map of plain numbers; the model cannot be taken apart exactly."
        )
    stored = weight.detach()
    return (
        stored if type(module).__name__ == "Conv1D" else stored.T,
        bias.detach() if isinstance(bias, Tensor) else None,
    )
