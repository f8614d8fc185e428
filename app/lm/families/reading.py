"""Families: what differs between architectures, one short description for each.

A description gives paths of modules below the model or below one layer, and reads numbers from the config. Adding a
family is an entry here and a case in tests/lm/test_families.py; docs/families.md shows how.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from app.errors import Unsupported
from app.lm.anatomy import Anatomy, Block
from app.lm.norms import Norm, read_norm

Config = Any


@dataclass(frozen=True)
class Family:
    """Where an architecture keeps its parts. Paths in `layer_*` start at a layer, the others at the model."""

    layers: str = "model.layers"
    embed: str = "model.embed_tokens"
    embed_norm: str = ""
    pos_embed: str = ""
    final_norm: str = "model.norm"
    layer_attention: str = "self_attn"
    layer_output_projection: str = "self_attn.o_proj"
    layer_attention_norm: str = "input_layernorm"
    layer_attention_post_norm: str = ""
    layer_mlp_norm: str = "post_attention_layernorm"
    layer_mlp_write: str = "mlp"
    layer_mlp_post_norm: str = ""
    positions: str = "rotary"
    gain_offset: float = 0.0
    parallel: Callable[[Config], bool] = lambda config: False
    embed_scale: Callable[[Config], float] = lambda config: 1.0
    multiplier: Callable[[Config], float] = lambda config: 1.0
    logit_scale: Callable[[Config], float] = lambda config: 1.0


LLAMA = Family()
GPT2 = Family(
    layers="transformer.h",
    embed="transformer.wte",
    pos_embed="transformer.wpe",
    final_norm="transformer.ln_f",
    layer_attention="attn",
    layer_output_projection="attn.c_proj",
    layer_attention_norm="ln_1",
    layer_mlp_norm="ln_2",
    positions="learned",
)

FAMILIES: dict[str, Family] = {"llama": LLAMA, "gpt2": GPT2}


def read_anatomy(model: nn.Module) -> Anatomy:
    """The anatomy of a loaded causal language model.

    Raises:
        Unsupported: the family is unknown, or a part is not where the family keeps it.
    """
    config: Config = model.config
    family = FAMILIES.get(config.model_type)
    if family is None:
        known = ", ".join(sorted(FAMILIES))
        raise Unsupported(f"Models of type {config.model_type} are not supported; supported are: {known}.")
    layers = part(model, family.layers)
    windows = layer_windows(config, len(layers))  # type: ignore[arg-type]
    blocks = tuple(
        _read_block(family, config, index, layer, windows[index])
        for index, layer in enumerate(layers)  # type: ignore[arg-type]
    )
    final = part(model, family.final_norm)
    head = model.get_output_embeddings()  # type: ignore[operator]
    return Anatomy(
        family=config.model_type,
        blocks=blocks,
        embed=part(model, family.embed),
        embed_scale=family.embed_scale(config),
        embed_norm=part(model, family.embed_norm) if family.embed_norm else None,
        pos_embed=part(model, family.pos_embed) if family.pos_embed else None,
        positions=family.positions,
        parallel=family.parallel(config),
        final_norm=read_norm(final, family.gain_offset),
        final_norm_module=final,
        unembed_projection=None,
        lm_head=head,
        logit_scale=family.logit_scale(config),
        logit_cap=getattr(config, "final_logit_softcapping", None),
        d_model=int(config.hidden_size),
        vocab_size=int(head.weight.shape[0]),
        max_positions=int(getattr(config, "max_position_embeddings", 0) or 0) or 2**31,
        records_with="sdpa" if getattr(model, "_supports_sdpa", False) else "eager",
    )


def _read_block(family: Family, config: Config, index: int, layer: nn.Module, window: int | None) -> Block:
    n_heads = int(config.num_attention_heads)
    projection = part(layer, family.layer_output_projection)
    post = family.layer_attention_post_norm
    return Block(
        index=index,
        layer=layer,
        attention=part(layer, family.layer_attention),
        output_projection=projection,
        attention_write=part(layer, post) if post else projection,
        mlp_write=part(layer, family.layer_mlp_post_norm or family.layer_mlp_write),
        attention_norm=_optional_norm(layer, family.layer_attention_norm, family.gain_offset),
        attention_post_norm=_optional_norm(layer, post, family.gain_offset),
        mlp_norm=_optional_norm(layer, family.layer_mlp_norm, family.gain_offset),
        mlp_post_norm=_optional_norm(layer, family.layer_mlp_post_norm, family.gain_offset),
        n_heads=n_heads,
        n_kv_heads=int(getattr(config, "num_key_value_heads", None) or n_heads),
        d_head=int(getattr(config, "head_dim", None) or config.hidden_size // n_heads),
        multiplier=family.multiplier(config),
        window=window,
        has_rotary=family.positions == "rotary",
    )


def layer_windows(config: Config, n_layers: int) -> tuple[int | None, ...]:
    """The sliding window of each layer in tokens, None where a layer sees everything before it."""
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if window is None:
        return (None,) * n_layers
    if kinds is None:
        return (int(window),) * n_layers
    return tuple(int(window) if kind == "sliding_attention" else None for kind in kinds)


def part(root: nn.Module, path: str) -> nn.Module:
    """The module at a dotted path.

    Raises:
        Unsupported: there is none.
    """
    try:
        return root.get_submodule(path)
    except AttributeError as error:
        raise Unsupported(
            f"{type(root).__name__} has no part named {path}; its family is described wrongly."
        ) from error


def _optional_norm(layer: nn.Module, path: str, gain_offset: float) -> Norm | None:
    return read_norm(part(layer, path), gain_offset) if path else None
