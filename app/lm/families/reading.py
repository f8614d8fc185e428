"""A family's description applied to a loaded model."""

from collections.abc import Callable
from typing import Any

from torch import nn

from app.errors import Unsupported
from app.lm.anatomy import Anatomy, Block
from app.lm.families.description import Config, Family, Layer
from app.lm.families.table import FAMILIES
from app.lm.norms import Norm, read_norm

# Names under which attention modules keep a norm of queries or keys, and learned sinks.
QK_NORMS = ("q_norm", "q_layernorm", "query_layernorm")
NO_LIMIT = 2**31


def require_family(model_type: str) -> Callable[[Config], Family]:
    """The description of a model type.

    Raises:
        Unsupported: there is none; the message lists those there are.
    """
    family = FAMILIES.get(model_type)
    if family is None:
        known = ", ".join(sorted(FAMILIES))
        raise Unsupported(f"Models of type {model_type} are not supported; supported are: {known}.")
    return family


def describe(config: Config) -> Family:
    """The family of a configuration.

    Raises:
        Unsupported: the family is unknown, or this variant of it cannot be taken apart exactly.
    """
    family = require_family(config.model_type)
    if getattr(config, "use_bidirectional_attention", False):
        raise Unsupported("This model attends in both directions; it predicts no next token and is not supported.")
    return family(config)


def read_anatomy(model: nn.Module) -> Anatomy:
    """The anatomy of a loaded causal language model.

    Raises:
        Unsupported: the family is unknown, or a part is not where the family keeps it.
    """
    config: Config = model.config
    family = describe(config)
    modules: Any = part(model, family.stack)
    if len(modules) != len(family.layers):
        raise Unsupported(f"The model has {len(modules)} layers; its configuration says {len(family.layers)}.")
    if all(layer.unsupported for layer in family.layers):
        raise Unsupported(f"No layer of this {config.model_type} model has softmax attention; no pattern can be shown.")
    head = model.get_output_embeddings()  # type: ignore[operator]
    final = part(model, family.final_norm) if family.final_norm else None
    return Anatomy(
        family=config.model_type,
        blocks=tuple(
            _read_block(family, config, index, module, layer)
            for index, (module, layer) in enumerate(zip(modules, family.layers, strict=True))
        ),
        embed=part(model, family.embed),
        embed_scale=family.embed_scale,
        pos_embed=part(model, family.pos_embed) if family.pos_embed else None,
        positions=family.positions,
        parallel=family.parallel,
        final_norm=None if final is None else read_norm(final, family.gain_offset),
        final_norm_module=final,
        unembed_projection=part(model, family.unembed_projection) if family.unembed_projection else None,
        lm_head=head,
        logit_scale=family.logit_scale,
        logit_cap=family.logit_cap,
        d_model=int(config.hidden_size),
        vocab_size=int(head.weight.shape[0]),
        max_positions=_max_positions(config),
        records_with=_records_with(family, model),
        notes=family.notes,
    )


def _records_with(family: Family, model: nn.Module) -> str:
    if family.own_attention is not None:
        return "the model's own"
    return "sdpa" if getattr(model, "_supports_sdpa", False) else "eager"


def _max_positions(config: Config) -> int:
    names = ("max_position_embeddings", "max_seq_len")
    return next((int(value) for name in names if (value := getattr(config, name, None))), NO_LIMIT)


def _read_block(family: Family, config: Config, index: int, module: nn.Module, layer: Layer) -> Block:
    n_heads = int(config.num_attention_heads)
    n_kv_heads = family.n_kv_heads or int(getattr(config, "num_key_value_heads", None) or n_heads)
    attends = not layer.unsupported
    attention = part(module, layer.attention)
    projection = part(module, layer.output_projection) if attends else None
    post = layer.attention_post_norm
    sums = layer.sum_norms

    def norm(path: str) -> Norm | None:
        return read_norm(part(module, path), family.gain_offset) if path else None

    return Block(
        index=index,
        layer=module,
        attention=attention if attends else None,
        output_projection=projection,
        attention_write=part(module, post) if post else projection or attention,
        mlp_write=part(module, layer.mlp_post_norm or layer.mlp),
        attention_norm=norm(layer.attention_norm),
        attention_post_norm=norm(post),
        mlp_norm=norm(layer.mlp_norm),
        mlp_post_norm=norm(layer.mlp_post_norm),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        d_head=int(getattr(config, "head_dim", None) or config.hidden_size // n_heads),
        multiplier=family.multiplier,
        window=layer.window,
        has_rotary=layer.has_rotary,
        has_qk_norm=attends and any(getattr(attention, name, None) is not None for name in QK_NORMS),
        own_attention=family.own_attention if attends else None,
        sum_norms=None if sums is None else (read_norm(part(module, sums[0])), read_norm(part(module, sums[1]))),
        unsupported=layer.unsupported,
    )


def part(root: nn.Module, path: str) -> nn.Module:
    """The module at a dotted path.

    Raises:
        Unsupported: there is none.
    """
    try:
        found = root.get_submodule(path)
    except AttributeError:
        found = None
    if not isinstance(found, nn.Module):
        raise Unsupported(f"{type(root).__name__} has no part named {path}; its family is described wrongly.")
    return found
