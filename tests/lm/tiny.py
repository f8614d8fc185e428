"""Tiny random models of every family, from their configurations alone.

Norms and biases are random too: a gain of 1 or a bias of 0 hides mistakes. A case is a name, a model type and what its
configuration says beyond `SIZES`; two cases of one family differ in what the family can vary.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

VOCAB, WIDTH, HEADS, LAYERS, LONGEST = 61, 32, 4, 3, 64
SIZES = {
    "vocab_size": VOCAB, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "max_position_embeddings": LONGEST, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None,
}  # fmt: skip
# Twelve tokens, some repeated: three times the windows used here.
PROMPT = (7, 21, 3, 3, 40, 58, 7, 21, 11, 0, 33, 7)


@dataclass(frozen=True)
class Case:
    """One tiny model. `rename` says how the family calls what `SIZES` names; a name of "" leaves it out."""

    name: str
    model_type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)

    def config(self, **changes: Any) -> Any:
        options = {self.rename.get(name, name): value for name, value in SIZES.items()} | dict(self.options) | changes
        options.pop("", None)
        # Configurations complete the dictionaries that they are given in place.
        return AutoConfig.for_model(self.model_type, **deepcopy(options))


def _gqa(**options: Any) -> dict[str, Any]:
    return {"num_key_value_heads": 2, "intermediate_size": 48, **options}


GPT = {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "hidden_size": "n_embd",
       "max_position_embeddings": "n_positions"}  # fmt: skip
HALF_ROTARY = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}}
ROTARY = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}
TWO_ROTARY = {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 500.0},
                                  "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}}  # fmt: skip
WINDOWS = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
BLOOM = {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "max_position_embeddings": ""}
MPT = {"num_hidden_layers": "n_layers", "num_attention_heads": "n_heads", "hidden_size": "d_model",
       "max_position_embeddings": "max_seq_len"}  # fmt: skip

CASES = (
    Case("gpt2", "gpt2", rename=GPT),
    Case("gpt2-scaled-by-layer", "gpt2", {"scale_attn_by_inverse_layer_idx": True, "n_inner": 40}, GPT),
    Case("gpt-neo", "gpt_neo", {"attention_types": [[["global", "local", "global"], 1]], "window_size": 4},
         {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"}),
    Case("gpt-j", "gptj", {"rotary_dim": 4}, GPT),
    Case("gpt-neox-parallel", "gpt_neox", {"use_parallel_residual": True, "intermediate_size": 48, **HALF_ROTARY}),
    Case("gpt-neox-sequential", "gpt_neox", {"use_parallel_residual": False, "intermediate_size": 48, **HALF_ROTARY}),
    Case("opt", "opt", {"ffn_dim": 48, "word_embed_proj_dim": WIDTH}),
    Case("opt-projected", "opt", {"ffn_dim": 48, "word_embed_proj_dim": 20}),
    Case("opt-norm-of-sum", "opt", {"ffn_dim": 48, "word_embed_proj_dim": 20, "do_layer_norm_before": False}),
    Case("bloom", "bloom", {"hidden_size": WIDTH}, BLOOM),
    Case("bloom-six-heads", "bloom", {"hidden_size": 48, "n_head": 6}, BLOOM),
    Case("falcon-multi-query", "falcon", {"multi_query": True, "bias": True, **ROTARY}),
    Case("falcon-all-heads", "falcon", {"multi_query": False, "parallel_attn": False, **ROTARY}),
    Case("falcon-grouped", "falcon", {"new_decoder_architecture": True, "num_kv_heads": 2, "bias": True, **ROTARY}),
    Case("falcon-grouped-one-norm", "falcon",
         {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1, **ROTARY}),
    Case("falcon-alibi", "falcon", {"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True}),
    Case("mpt", "mpt", {"attn_config": {"clip_qkv": 0.8}}, MPT),
    Case("mpt-six-heads", "mpt", {"d_model": 48, "n_heads": 6, "attn_config": {"softmax_scale": 0.3}}, MPT),
    Case("llama", "llama", _gqa(attention_bias=True, mlp_bias=True, **ROTARY)),
    Case("llama-wide-heads", "llama", _gqa(head_dim=12, **ROTARY)),
    Case("llama-eight-over-two", "llama", _gqa(num_attention_heads=8, **ROTARY)),
    Case("llama-eight-over-one", "llama", {**_gqa(num_attention_heads=8, **ROTARY), "num_key_value_heads": 1}),
    Case("mistral", "mistral", _gqa(sliding_window=4, head_dim=8, **ROTARY)),
    Case("mixtral", "mixtral", _gqa(sliding_window=None, num_local_experts=3, num_experts_per_tok=2, **ROTARY)),
    Case("qwen2", "qwen2", _gqa(use_sliding_window=True, **WINDOWS, **ROTARY)),
    Case("qwen3", "qwen3", _gqa(head_dim=12, attention_bias=True, **ROTARY)),
    Case("qwen3-moe", "qwen3_moe", _gqa(head_dim=8, moe_intermediate_size=16, num_experts=4, num_experts_per_tok=2,
                                        mlp_only_layers=[0], **ROTARY)),
    Case("gemma", "gemma", _gqa(head_dim=12, **ROTARY)),
    Case("gemma2", "gemma2", _gqa(head_dim=8, query_pre_attn_scalar=5, attn_logit_softcapping=1.5,
                                  final_logit_softcapping=2.0, **WINDOWS, **ROTARY)),
    Case("gemma3", "gemma3_text", _gqa(head_dim=8, query_pre_attn_scalar=5, **WINDOWS, **TWO_ROTARY)),
    Case("phi", "phi", _gqa(**HALF_ROTARY)),
    Case("phi-normed-queries", "phi", _gqa(qk_layernorm=True, **HALF_ROTARY)),
    Case("phi3", "phi3", _gqa(sliding_window=4, **ROTARY)),
    Case("stablelm", "stablelm", _gqa(use_qkv_bias=True, **HALF_ROTARY)),
    Case("stablelm-parallel", "stablelm", _gqa(use_parallel_residual=True, qk_layernorm=True, **HALF_ROTARY)),
    Case("olmo", "olmo", _gqa(clip_qkv=0.8, **ROTARY)),
    Case("olmo2", "olmo2", _gqa(**ROTARY)),
    Case("olmo3", "olmo3", _gqa(**WINDOWS, **TWO_ROTARY)),
    Case("cohere", "cohere", _gqa(logit_scale=0.3, use_qk_norm=True, attention_bias=True, **ROTARY)),
    Case("cohere2", "cohere2", _gqa(logit_scale=0.3, **WINDOWS, **ROTARY)),
    Case("granite", "granite", _gqa(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.6,
                                    logits_scaling=2.5, attention_bias=True, **ROTARY)),
    Case("starcoder2", "starcoder2", _gqa(sliding_window=4, **ROTARY)),
    Case("smollm3", "smollm3", _gqa(no_rope_layers=[1, 0, 1], use_sliding_window=True, **WINDOWS, **ROTARY)),
    Case("gpt-oss", "gpt_oss", _gqa(head_dim=8, num_local_experts=3, num_experts_per_tok=2, attention_bias=True,
                                    **WINDOWS, **ROTARY)),
    Case("arcee", "arcee", _gqa(attention_bias=True, **ROTARY)),
    Case("biogpt", "biogpt", {"intermediate_size": 48}),
    Case("codegen", "codegen", {"rotary_dim": 4}, GPT),
    Case("ernie4-5", "ernie4_5", _gqa(head_dim=8, use_bias=True, **ROTARY)),
    Case("exaone4", "exaone4", _gqa(head_dim=8, sliding_window=None, layer_types=["full_attention"] * 3, **ROTARY)),
    Case("exaone4-windows", "exaone4", _gqa(head_dim=8, **WINDOWS, **ROTARY)),
    Case("glm", "glm", _gqa(head_dim=8, attention_bias=True, **HALF_ROTARY)),
    Case("glm4", "glm4", _gqa(head_dim=8, **HALF_ROTARY)),
    Case("gpt-bigcode", "gpt_bigcode", {"multi_query": True}, GPT),
    Case("gpt-bigcode-all-heads", "gpt_bigcode", {"multi_query": False}, GPT),
    Case("granite-moe", "granitemoe", _gqa(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.6,
                                           logits_scaling=2.5, num_local_experts=3, num_experts_per_tok=2, **ROTARY)),
    Case("helium", "helium", _gqa(head_dim=8, **ROTARY)),
    Case("hunyuan", "hunyuan_v1_dense", _gqa(head_dim=8, **ROTARY)),
    Case("ministral", "ministral", _gqa(head_dim=8, **WINDOWS, **ROTARY)),
    Case("nemotron", "nemotron", _gqa(head_dim=8, **HALF_ROTARY)),
    Case("olmoe", "olmoe", _gqa(clip_qkv=0.8, num_experts=3, num_experts_per_tok=2, **ROTARY)),
    Case("persimmon", "persimmon", {"intermediate_size": 48, **HALF_ROTARY}),
    Case("qwen2-moe", "qwen2_moe", _gqa(moe_intermediate_size=16, shared_expert_intermediate_size=24, num_experts=4,
                                        num_experts_per_tok=2, decoder_sparse_step=2, **ROTARY)),
    Case("seed-oss", "seed_oss", _gqa(head_dim=8, attention_bias=True, attention_out_bias=True, **ROTARY)),
)  # fmt: skip
# Models in which only some layers have softmax attention.
HYBRIDS = (
    Case("lfm2", "lfm2", _gqa(layer_types=["conv", "full_attention", "conv"], block_auto_adjust_ff_dim=False,
         **ROTARY)),
    Case("olmo-hybrid", "olmo_hybrid", _gqa(layer_types=["linear_attention", "full_attention", "linear_attention"],
         linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=2, **ROTARY)),
    Case("jamba", "jamba", _gqa(attn_layer_period=3, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
         num_experts=2, num_experts_per_tok=1, mamba_d_state=4, mamba_d_conv=2, mamba_dt_rank=4)),
)  # fmt: skip
BY_NAME = {case.name: case for case in (*CASES, *HYBRIDS)}


def build(config: Any, seed: int = 0) -> Any:
    """A model of a configuration with random weights, in float32."""
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval().requires_grad_(False)
    randomise(model, seed)
    return model


def randomise(model: nn.Module, seed: int = 0) -> None:
    """Fills every parameter: matrices keep the size of what passes through them, gains lie around 1 (Gemma's around 0,
    which is their 1), biases around 0."""
    generator = torch.Generator().manual_seed(seed)
    ones = {id(p) for p in model.parameters() if p.ndim == 1 and bool((p == 1).all())}
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.ndim >= 2 and "norm" not in name:
            scale = 1.0 if "embed" in name or "wte" in name or "wpe" in name else parameter.shape[-1] ** -0.5
            parameter.data.copy_(noise * scale)
        else:
            is_gain = id(parameter) in ones or (parameter.ndim == 2 and "norm" in name)
            parameter.data.copy_(noise * 0.3 + (1.0 if is_gain else 0.0))


@cache
def model_of(name: str) -> Any:
    """The model of a case, built once; nothing may change it."""
    return build(BY_NAME[name].config())
