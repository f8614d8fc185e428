"""What a family's description is made of: plain data, read from a model's configuration."""

from dataclasses import dataclass
from typing import Any, Literal

from app.lm.own_attention import OwnAttention

Config = Any
Positions = Literal["rotary", "learned", "alibi", "none"]


@dataclass(frozen=True)
class Layer:
    """Where one layer keeps its parts. Paths start at the layer; empty where it has no such part.

    `attention` is the module that attends, `output_projection` is W_O. `mlp` is the module whose output is added to the
    stream (not one that returns the stream already added). A post-norm normalises a sub-layer's output before it is
    added; `sum_norms` are two norms that replace the stream itself, after attention and after the MLP. With a reason
    in `unsupported` the layer has no softmax attention, and `attention` is what stands in its place.
    """

    attention: str = "self_attn"
    output_projection: str = "self_attn.o_proj"
    attention_norm: str = "input_layernorm"
    attention_post_norm: str = ""
    mlp_norm: str = "post_attention_layernorm"
    mlp: str = "mlp"
    mlp_post_norm: str = ""
    sum_norms: tuple[str, str] | None = None
    window: int | None = None
    has_rotary: bool = True
    unsupported: str = ""


@dataclass(frozen=True)
class Family:
    """A whole model. Paths start at the model; `embed` is the module whose output, times `embed_scale`, enters the
    stream, any norm or projection after the embedding table included.

    What is added to the stream is `multiplier` times what a sub-layer returns. `gain_offset` is 1 where norms multiply
    by 1 + weight. `own_attention` is set where the modules attend by themselves.
    """

    layers: tuple[Layer, ...]
    stack: str = "model.layers"
    embed: str = "model.embed_tokens"
    pos_embed: str = ""
    final_norm: str = "model.norm"
    unembed_projection: str = ""
    positions: Positions = "rotary"
    parallel: bool = False
    gain_offset: float = 0.0
    embed_scale: float = 1.0
    multiplier: float = 1.0
    logit_scale: float = 1.0
    logit_cap: float | None = None
    n_kv_heads: int | None = None
    own_attention: OwnAttention | None = None
    notes: tuple[str, ...] = ()
