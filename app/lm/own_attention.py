"""Attention modules that compute attention themselves instead of asking the library for a function.

Such a module hands q, k and v to nobody. They are read from the output of its projections, split as the module splits
them, with everything that it does to them before it attends. All of these modules attend by the same formula,

    A = softmax_j( scaling · q_i·k_j + bias_hj ),        z_i = Σ_j A_ij v_j,        j as the mask allows,

with an ALiBi bias that depends on the head and the source, or none. Whether this is what the module computed is not
assumed: the ledger compares z with what the module fed to W_O.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from app.errors import BrokenInvariant

HeadsOf = tuple[Tensor, Tensor, Tensor]


def _no_bias(module: nn.Module, call: Mapping[str, Any], n_pos: int) -> None:
    return None


@dataclass(frozen=True)
class OwnAttention:
    """How to read one kind of attention module.

    `projections` are paths below the module. `heads` turns their outputs [pos, features], the module and the keyword
    arguments of its call into q [head, pos, d_head] and k, v [kv_head, pos, d_head] as attention uses them. `key_bias`
    gives the bias [head, 1, key_pos] added to the scores after scaling, or None.
    """

    projections: tuple[str, ...]
    heads: Callable[[nn.Module, tuple[Tensor, ...], Mapping[str, Any]], HeadsOf]
    scaling: Callable[[Any], float]
    key_bias: Callable[[nn.Module, Mapping[str, Any], int], Tensor | None] = _no_bias


def biased_attention(
    module: nn.Module,
    query: Float[Tensor, "1 head query_pos d_head"],
    key: Float[Tensor, "1 kv_head key_pos d_head"],
    value: Float[Tensor, "1 kv_head key_pos d_head"],
    attention_mask: Float[Tensor, "1 1 query_pos key_pos"] | None,
    scaling: float,
    key_bias: Float[Tensor, "head 1 all_key_pos"] | None = None,
    **unused: object,
) -> tuple[Float[Tensor, "1 query_pos head d_head"], Float[Tensor, "1 head query_pos key_pos"]]:
    """z and pattern by the formula above; the module is not used. The softmax is in float32."""
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * scaling
    if key_bias is not None:
        scores = scores + key_bias[:, :, : key.shape[2]]
    if attention_mask is not None:
        scores = scores + attention_mask
    pattern = scores.softmax(-1, dtype=torch.float32).to(value.dtype)
    return torch.einsum("bhqk,bhkd->bqhd", pattern, value), pattern


def _by_head(flat: Float[Tensor, "pos features"], n_heads: int) -> Float[Tensor, "head pos d_head"]:
    by_head: Tensor = flat.unflatten(-1, (n_heads, -1)).transpose(0, 1)
    return by_head


def _plain_heads(module: Any, outputs: tuple[Tensor, ...], call: Mapping[str, Any]) -> HeadsOf:
    q, k, v = (_by_head(output, module.num_heads) for output in outputs)
    return q, k, v


def _thirds_heads(module: Any, outputs: tuple[Tensor, ...], call: Mapping[str, Any]) -> HeadsOf:
    (fused,) = outputs
    # Clipped out of place by the module, after the projection whose output this is.
    clipped = fused if not module.clip_qkv else fused.clamp(-module.clip_qkv, module.clip_qkv)
    q, k, v = (_by_head(part, module.n_heads) for part in clipped.chunk(3, dim=-1))
    return q, k, v


def _interleaved_heads(module: Any, outputs: tuple[Tensor, ...], call: Mapping[str, Any]) -> HeadsOf:
    (fused,) = outputs
    q, k, v = fused.unflatten(-1, (module.num_heads, 3, -1)).permute(2, 1, 0, 3).unbind(0)
    return q, k, v


def _grouped_heads(module: Any, outputs: tuple[Tensor, ...], call: Mapping[str, Any]) -> HeadsOf:
    (fused,) = outputs
    if not module.new_decoder_architecture and not module.multi_query:
        q, k, v = _interleaved_heads(module, outputs, call)
    else:
        # For each kv head its query heads, then the key, then the value; multi-query is one such group.
        grouped = fused.unflatten(-1, (module.num_kv_heads, -1, module.head_dim))
        q = grouped[:, :, :-2].flatten(1, 2).transpose(0, 1)
        k, v = grouped[:, :, -2].transpose(0, 1), grouped[:, :, -1].transpose(0, 1)
    if call.get("alibi") is not None:
        return q, k, v
    cos, sin = call["position_embeddings"]
    return _rotated(q, cos[0], sin[0]), _rotated(k, cos[0], sin[0]), v


def _rotated(
    x: Float[Tensor, "head pos d_head"], cos: Float[Tensor, "pos d_head"], sin: Float[Tensor, "pos d_head"]
) -> Float[Tensor, "head pos d_head"]:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _alibi(module: Any, call: Mapping[str, Any], n_pos: int) -> Tensor | None:
    return _required(call, "alibi").reshape(module.num_heads, 1, -1)


def _scaled_alibi(module: Any, call: Mapping[str, Any], n_pos: int) -> Tensor | None:
    alibi = call.get("alibi")
    return None if alibi is None else alibi.reshape(module.num_heads, 1, -1) / math.sqrt(module.head_dim)


def _position_bias(module: Any, call: Mapping[str, Any], n_pos: int) -> Tensor | None:
    # Built for the longest prompt; its last columns belong to the prompt at hand.
    return _required(call, "position_bias")[..., -n_pos:]


def _required(call: Mapping[str, Any], name: str) -> Tensor:
    value = call.get(name)
    if not isinstance(value, Tensor):
        raise BrokenInvariant(f"The attention module was not given {name}; its family is described wrongly.")
    return value


GPT_NEO_ATTENTION = OwnAttention(("q_proj", "k_proj", "v_proj"), _plain_heads, lambda module: 1.0)
BLOOM_ATTENTION = OwnAttention(
    ("query_key_value",), _interleaved_heads, lambda module: float(module.inv_norm_factor), _alibi
)
FALCON_ATTENTION = OwnAttention(
    ("query_key_value",), _grouped_heads, lambda module: float(module.inv_norm_factor), _scaled_alibi
)
MPT_ATTENTION = OwnAttention(("Wqkv",), _thirds_heads, lambda module: float(module.softmax_scale), _position_bias)
