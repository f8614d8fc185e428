"""The families: for each model type, a function from the configuration to a `Family`.

Adding one is a function here (often a few fields of another family changed) and a case in tests/lm/tiny.py;
docs/families.md shows how.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.errors import Unsupported
from app.lm.families.description import Config, Family, Layer
from app.lm.own_attention import BLOOM_ATTENTION, FALCON_ATTENTION, GPT_NEO_ATTENTION, MPT_ATTENTION


def repeated(layer: Layer, config: Config) -> tuple[Layer, ...]:
    """The same layer as often as the model has layers, each with its own sliding window."""
    return tuple(replace(layer, window=window) for window in windows(config))


def windows(config: Config) -> tuple[int | None, ...]:
    """The sliding window of each layer in tokens, None where a layer sees everything before it."""
    n_layers = int(config.num_hidden_layers)
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if window is None:
        return (None,) * n_layers
    if kinds is None:
        return (int(window),) * n_layers
    return tuple(int(window) if kind == "sliding_attention" else None for kind in kinds)


def llama(config: Config, **changes: object) -> Family:
    """Norm before each sub-layer, rotary positions, one after the other: the form that most families vary."""
    return replace(Family(repeated(Layer(), config)), **changes)  # type: ignore[arg-type]


def gpt2(config: Config) -> Family:
    """GPT-2: learned positions, layer norms, weights of linear maps not transposed."""
    layer = Layer("attn", "attn.c_proj", "ln_1", mlp_norm="ln_2", has_rotary=False)
    return Family(
        repeated(layer, config), "transformer.h", "transformer.wte", "transformer.wpe", "transformer.ln_f",
        positions="learned",
    )  # fmt: skip


def gpt_neo(config: Config) -> Family:
    """GPT-Neo: GPT-2's form, scores not scaled, local and global layers in turn, attention computed by the module."""
    layer = Layer("attn.attention", "attn.attention.out_proj", "ln_1", mlp_norm="ln_2", has_rotary=False)
    local = {"local": int(config.window_size), "global": None}
    layers = tuple(replace(layer, window=local[kind]) for kind in config.attention_layers)
    return replace(gpt2(config), layers=layers, own_attention=GPT_NEO_ATTENTION)


def gptj(config: Config) -> Family:
    """GPT-J: attention and MLP read the same norm and are added together."""
    layer = Layer("attn", "attn.out_proj", "ln_1", mlp_norm="ln_1")
    return Family(
        repeated(layer, config), "transformer.h", "transformer.wte", final_norm="transformer.ln_f", parallel=True
    )


def gpt_neox(config: Config) -> Family:
    """GPT-NeoX and Pythia: parallel or not, as the configuration says; two norms in either case."""
    return Family(
        repeated(Layer("attention", "attention.dense"), config), "gpt_neox.layers", "gpt_neox.embed_in",
        final_norm="gpt_neox.final_layer_norm", parallel=bool(config.use_parallel_residual),
    )  # fmt: skip


def codegen(config: Config) -> Family:
    """CodeGen: GPT-J with one projection for queries, values and keys; how it is split is the module's affair."""
    return gptj(config)


def gpt_bigcode(config: Config) -> Family:
    """StarCoder (the first): GPT-2's form, keys and values shared by all heads where set."""
    return replace(gpt2(config), n_kv_heads=1 if config.multi_query else None)


def persimmon(config: Config) -> Family:
    """Persimmon: GPT-NeoX's fused projection in Llama's frame, with layer norms."""
    return Family(
        repeated(Layer(output_projection="self_attn.dense"), config), final_norm="model.final_layernorm"
    )  # fmt: skip


def biogpt(config: Config) -> Family:
    """BioGPT: OPT's layers with norms before, the embedding scaled by its module."""
    layer = Layer(
        "self_attn", "self_attn.out_proj", "self_attn_layer_norm", mlp_norm="final_layer_norm", mlp="fc2",
        has_rotary=False,
    )  # fmt: skip
    return Family(
        repeated(layer, config), "biogpt.layers", "biogpt.embed_tokens", "biogpt.embed_positions", "biogpt.layer_norm",
        positions="learned",
    )  # fmt: skip


def opt(config: Config) -> Family:
    """OPT: no MLP module; a narrower embedding is projected in and out; the 350M model normalises the sums."""
    decoder, projected = "model.decoder", config.word_embed_proj_dim != config.hidden_size
    layer = Layer(
        "self_attn", "self_attn.out_proj", "self_attn_layer_norm", mlp_norm="final_layer_norm", mlp="fc2",
        has_rotary=False,
    )  # fmt: skip
    if not config.do_layer_norm_before:
        norms = (layer.attention_norm, layer.mlp_norm)
        layer = replace(layer, attention_norm="", mlp_norm="", sum_norms=norms)
    has_final_norm = config.do_layer_norm_before and not getattr(config, "_remove_final_layer_norm", False)
    return Family(
        repeated(layer, config),
        f"{decoder}.layers",
        f"{decoder}.project_in" if projected else f"{decoder}.embed_tokens",
        f"{decoder}.embed_positions",
        f"{decoder}.final_layer_norm" if has_final_norm else "",
        f"{decoder}.project_out" if projected else "",
        positions="learned",
    )


def bloom(config: Config) -> Family:
    """BLOOM: ALiBi, a norm after the embedding, modules that return the stream already added."""
    if config.apply_residual_connection_post_layernorm:
        raise Unsupported(
            "This BLOOM model replaces the stream by its norm in every layer; writes do not add up in it."
        )
    if config.slow_but_exact and config.pretraining_tp > 1:
        raise Unsupported(
            "This BLOOM model multiplies by slices of its output projection; set slow_but_exact to false."
        )
    layer = Layer("self_attention", "self_attention.dense", mlp="mlp.dense_4h_to_h", has_rotary=False)
    return Family(
        repeated(layer, config), "transformer.h", "transformer.word_embeddings_layernorm",
        final_norm="transformer.ln_f", positions="alibi", own_attention=BLOOM_ATTENTION,
    )  # fmt: skip


def falcon(config: Config) -> Family:
    """Falcon: parallel with one norm or two, or sequential; ALiBi or rotary; any sharing of keys and values."""
    new = bool(config.new_decoder_architecture)
    parallel = new or bool(config.parallel_attn)
    norms = ("input_layernorm", "input_layernorm" if parallel else "post_attention_layernorm")
    if new and config.num_ln_in_parallel_attn in (None, 2):
        norms = ("ln_attn", "ln_mlp")
    layer = Layer(
        "self_attention", "self_attention.dense", norms[0], mlp_norm=norms[1], has_rotary=not config.alibi
    )  # fmt: skip
    notes = (
        "The library has two paths for ALiBi in this family that give different logits; shown are those of its "
        "default, sdpa, which adds the bias once.",
    )
    return Family(
        repeated(layer, config), "transformer.h", "transformer.word_embeddings", final_norm="transformer.ln_f",
        positions="alibi" if config.alibi else "rotary", parallel=parallel, own_attention=FALCON_ATTENTION,
        n_kv_heads=int(config.num_kv_heads) if new or not config.multi_query else 1,
        notes=notes if config.alibi else (),
    )  # fmt: skip


def mpt(config: Config) -> Family:
    """MPT: ALiBi, layer norms without bias, an MLP that returns the stream already added."""
    layer = Layer("attn", "attn.out_proj", "norm_1", mlp_norm="norm_2", mlp="ffn.down_proj", has_rotary=False)
    return Family(
        repeated(layer, config), "transformer.blocks", "transformer.wte", final_norm="transformer.norm_f",
        positions="alibi", own_attention=MPT_ATTENTION,
    )  # fmt: skip


def gemma(config: Config) -> Family:
    """Gemma: gain is 1 + weight; the embedding module scales by itself."""
    return llama(config, gain_offset=1.0)


def gemma2(config: Config) -> Family:
    """Gemma 2 and 3: norms before and after both sub-layers, windows in some layers, soft caps where set."""
    layer = Layer(
        attention_post_norm="post_attention_layernorm", mlp_norm="pre_feedforward_layernorm",
        mlp_post_norm="post_feedforward_layernorm",
    )  # fmt: skip
    return Family(repeated(layer, config), gain_offset=1.0, logit_cap=config.final_logit_softcapping)


def phi(config: Config) -> Family:
    """Phi: attention and MLP read the same layer norm and are added together; biases everywhere, W_U's included."""
    layer = Layer("self_attn", "self_attn.dense", mlp_norm="input_layernorm")
    return Family(repeated(layer, config), final_norm="model.final_layernorm", parallel=True)


def stablelm(config: Config) -> Family:
    """StableLM: layer norms; parallel, with one norm for both, where the configuration says so."""
    parallel = bool(config.use_parallel_residual)
    layer = Layer(mlp_norm="input_layernorm" if parallel else "post_attention_layernorm")
    return Family(repeated(layer, config), parallel=parallel)


def olmo2(config: Config) -> Family:
    """OLMo 2 and 3: no norm before a sub-layer, one after it."""
    return Family(repeated(POST_NORM_LAYER, config))


POST_NORM_LAYER = Layer(
    attention_norm="", attention_post_norm="post_attention_layernorm", mlp_norm="",
    mlp_post_norm="post_feedforward_layernorm",
)  # fmt: skip


def exaone4(config: Config) -> Family:
    """EXAONE 4: OLMo 2's norms; where some layers have windows, the others have no positions."""
    family = olmo2(config)
    if config.sliding_window is None:
        return family
    return replace(family, layers=tuple(replace(layer, has_rotary=layer.window is not None) for layer in family.layers))


def glm4(config: Config) -> Family:
    """GLM-4 (0414): norms before and after both sub-layers, under names that other families use otherwise."""
    layer = Layer(attention_post_norm="post_self_attn_layernorm", mlp_post_norm="post_mlp_layernorm")
    return Family(repeated(layer, config))


def nemotron(config: Config) -> Family:
    """Nemotron: layer norms whose gain is 1 + weight."""
    return llama(config, gain_offset=1.0)


def cohere(config: Config) -> Family:
    """Cohere: one centring norm without bias for both sub-layers, added together; logits scaled."""
    layers = repeated(Layer(mlp_norm="input_layernorm"), config)
    return Family(layers, parallel=True, logit_scale=float(config.logit_scale))


def cohere2(config: Config) -> Family:
    """Cohere 2: layers with a window have rotary positions, the others have none."""
    family = cohere(config)
    return replace(family, layers=tuple(replace(layer, has_rotary=layer.window is not None) for layer in family.layers))


def granite(config: Config) -> Family:
    """Granite: multipliers on the embedding, on whatever is added, and (divided) on the logits."""
    return llama(
        config, embed_scale=float(config.embedding_multiplier), multiplier=float(config.residual_multiplier),
        logit_scale=1.0 / float(config.logits_scaling),
    )  # fmt: skip


def granitemoe(config: Config) -> Family:
    """Granite with experts."""
    family = granite(config)
    return replace(family, layers=tuple(replace(layer, mlp="block_sparse_moe") for layer in family.layers))


def smollm3(config: Config) -> Family:
    """SmolLM3: some layers have no positions at all."""
    family = llama(config)
    return replace(
        family,
        layers=tuple(
            replace(layer, has_rotary=bool(rotary))
            for layer, rotary in zip(family.layers, config.no_rope_layers, strict=False)
        ),
    )


def lfm2(config: Config) -> Family:
    """LFM2: short convolutions in most layers, attention in the others."""
    layer = Layer(
        output_projection="self_attn.out_proj", attention_norm="operator_norm", mlp_norm="ffn_norm", mlp="feed_forward"
    )
    other = replace(layer, attention="conv", unsupported="it mixes tokens by a short convolution", has_rotary=False)
    layers = tuple(other if kind == "conv" else layer for kind in config.layer_types)
    return Family(layers, final_norm="model.embedding_norm")


def olmo_hybrid(config: Config) -> Family:
    """OLMo Hybrid: linear attention with a norm before it, softmax attention with a norm after it."""
    other = Layer("linear_attn", unsupported="it has linear attention, which has no softmax pattern", has_rotary=False)
    has_rotary = config.rope_parameters is not None
    attention = replace(POST_NORM_LAYER, has_rotary=has_rotary)
    layers = tuple(other if kind == "linear_attention" else attention for kind in config.layer_types)
    return Family(layers, positions="rotary" if has_rotary else "none")


def jamba(config: Config) -> Family:
    """Jamba: state-space layers, and attention without positions in between."""
    layer = Layer(mlp_norm="pre_ff_layernorm", mlp="feed_forward", has_rotary=False)
    other = replace(layer, attention="mamba", unsupported="it is a state-space layer, which has no softmax pattern")
    layers = tuple(layer if kind == "full_attention" else other for kind in config.layer_types)
    return Family(layers, final_norm="model.final_layernorm", positions="none")


FAMILIES: Mapping[str, Callable[[Config], Family]] = {
    "arcee": llama,
    "biogpt": biogpt,
    "bloom": bloom,
    "codegen": codegen,
    "cohere": cohere,
    "cohere2": cohere2,
    "ernie4_5": llama,
    "exaone4": exaone4,
    "falcon": falcon,
    "gemma": gemma,
    "gemma2": gemma2,
    "gemma3_text": gemma2,
    "glm": llama,
    "glm4": glm4,
    "gpt2": gpt2,
    "gpt_bigcode": gpt_bigcode,
    "gpt_neo": gpt_neo,
    "gpt_neox": gpt_neox,
    "gpt_oss": llama,
    "gptj": gptj,
    "granite": granite,
    "granitemoe": granitemoe,
    "helium": llama,
    "hunyuan_v1_dense": llama,
    "jamba": jamba,
    "lfm2": lfm2,
    "llama": llama,
    "ministral": llama,
    "mistral": llama,
    "mixtral": llama,
    "mpt": mpt,
    "nemotron": nemotron,
    "olmo": llama,
    "olmo2": olmo2,
    "olmo3": olmo2,
    "olmo_hybrid": olmo_hybrid,
    "olmoe": llama,
    "opt": opt,
    "persimmon": persimmon,
    "phi": phi,
    "phi3": llama,
    "qwen2": llama,
    "qwen2_moe": llama,
    "qwen3": llama,
    "qwen3_moe": llama,
    "seed_oss": llama,
    "smollm3": smollm3,
    "stablelm": stablelm,
    "starcoder2": llama,
}
