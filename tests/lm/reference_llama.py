"""Reference decoders of Llama and of the families that vary it."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.lm.reference_weights import Weights, head, table, theta
from tests.lm.references import (
    Array,
    Block,
    Decoder,
    Linear,
    Map,
    Rotation,
    gated,
    gelu_tanh,
    layer_norm,
    sigmoid,
    silu,
    softmax,
    two_layers,
)  # fmt: skip


def gated_mlp(b: Weights, activation: Map = silu, below: str = "mlp.") -> Map:
    return gated(*(b.linear(f"{below}{name}_proj") for name in ("gate", "up", "down")), activation)


def windowed(c: Any, i: int) -> int | None:
    kinds = getattr(c, "layer_types", None)
    return c.sliding_window if kinds is not None and kinds[i] == "sliding_attention" else None


NORMS = {"norm_1": "input_layernorm", "norm_2": "post_attention_layernorm"}


def llama_block(c: Any, b: Weights, i: int, **changes: Any) -> Block:
    d_head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    parts: dict[str, Any] = {
        "heads": c.num_attention_heads,
        "kv_heads": c.num_key_value_heads,
        "rotation": Rotation(d_head, theta(c, i)),
        "window": windowed(c, i),
    }
    for name in "qkvo":
        if name not in changes:
            parts[name] = b.linear(f"self_attn.{name}_proj")
    for name, weight in NORMS.items():
        # With norms after the sub-layers, what stands before them is said by the family.
        if name not in changes and "post_norm_1" not in changes:
            parts[name] = b.rms_norm(weight, c.rms_norm_eps)
    if "mlp" not in changes:
        parts["mlp"] = gated_mlp(b)
    return Block(**(parts | changes))


def llama_decoder(c: Any, w: Weights, block: Callable[[Weights, int], Block], **changes: Any) -> Decoder:
    m = w.below("model")
    blocks = [block(m.below(f"layers.{i}"), i) for i in range(c.num_hidden_layers)]
    parts: dict[str, Any] = {"embed": table(m, "embed_tokens.weight"), "unembed": head(w)}
    if "final_norm" not in changes:
        parts["final_norm"] = m.rms_norm("norm", c.rms_norm_eps)
    return Decoder(blocks, **(parts | changes))


def llama(c: Any, w: Weights) -> Decoder:
    return llama_decoder(c, w, lambda b, i: llama_block(c, b, i))


def mistral(c: Any, w: Weights) -> Decoder:
    return llama_decoder(c, w, lambda b, i: llama_block(c, b, i, window=c.sliding_window))


def experts(b: Weights, gate: str, renormalised: bool, n: int, below: str = "mlp") -> Map:
    """A mixture: the best experts of each token, weighted by the softmax over all of them."""
    router, fused, down = b(f"{gate}.weight").T, b(f"{below}.experts.gate_up_proj"), b(f"{below}.experts.down_proj")

    def one(x: Array) -> Array:
        share = softmax(x @ router)
        best = np.argsort(-share)[:n]
        total, out = (share[best].sum() if renormalised else 1.0), np.zeros_like(x)
        for e in best:
            first, second = np.split(fused[e] @ x, 2)
            out += share[e] / total * (down[e] @ (silu(first) * second))
        return out

    return lambda rows: np.array([one(x) for x in rows])


def mixtral(c: Any, w: Weights) -> Decoder:
    return llama_decoder(
        c, w, lambda b, i: llama_block(c, b, i, mlp=experts(b, "mlp.gate", True, c.num_experts_per_tok))
    )  # fmt: skip


def head_norms(c: Any, b: Weights, offset: float = 0.0) -> dict[str, Map]:
    return {f"norm_{n}": b.rms_norm(f"self_attn.{n}_norm", c.rms_norm_eps, offset) for n in ("q", "k")}


def qwen3(c: Any, w: Weights) -> Decoder:
    return llama_decoder(c, w, lambda b, i: llama_block(c, b, i, **head_norms(c, b)))


def qwen3_moe(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        dense = i in c.mlp_only_layers
        mlp = gated_mlp(b) if dense else experts(b, "mlp.gate", c.norm_topk_prob, c.num_experts_per_tok)
        return llama_block(c, b, i, mlp=mlp, **head_norms(c, b))

    return llama_decoder(c, w, block)


def _gemma_decoder(c: Any, w: Weights, block: Callable[[Weights, int], Block], **changes: Any) -> Decoder:
    rows = table(w, "model.embed_tokens.weight")
    return llama_decoder(
        c, w, block, embed=lambda ids: rows(ids) * math.sqrt(c.hidden_size),
        final_norm=w.rms_norm("model.norm", c.rms_norm_eps, 1.0), **changes,
    )  # fmt: skip


def gemma(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        return llama_block(
            c, b, i, mlp=gated_mlp(b, gelu_tanh), norm_1=b.rms_norm("input_layernorm", c.rms_norm_eps, 1.0),
            norm_2=b.rms_norm("post_attention_layernorm", c.rms_norm_eps, 1.0),
        )  # fmt: skip

    return _gemma_decoder(c, w, block)


def gemma2(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        def norm(name: str) -> Map:
            return b.rms_norm(name, c.rms_norm_eps, 1.0)

        more = head_norms(c, b, 1.0) if b.has("self_attn.q_norm.weight") else {}
        return llama_block(
            c, b, i, mlp=gated_mlp(b, gelu_tanh), norm_1=norm("input_layernorm"),
            post_norm_1=norm("post_attention_layernorm"), norm_2=norm("pre_feedforward_layernorm"),
            post_norm_2=norm("post_feedforward_layernorm"), cap=c.attn_logit_softcapping,
            scaling=c.query_pre_attn_scalar**-0.5, **more,
        )  # fmt: skip

    return _gemma_decoder(c, w, block, logit_cap=c.final_logit_softcapping)


def phi(c: Any, w: Weights) -> Decoder:
    d_head = c.hidden_size // c.num_attention_heads

    def block(b: Weights, i: int) -> Block:
        norm, more = b.layer_norm("input_layernorm", c.layer_norm_eps), {}
        if c.qk_layernorm:
            more = {f"norm_{n}": b.layer_norm(f"self_attn.{n}_layernorm", c.layer_norm_eps) for n in ("q", "k")}
        return llama_block(
            c, b, i, o=b.linear("self_attn.dense"), mlp=two_layers(b.linear("mlp.fc1"), b.linear("mlp.fc2"), gelu_tanh),
            norm_1=norm, norm_2=norm, parallel=True, rotation=Rotation(d_head // 2, theta(c)), **more,
        )  # fmt: skip

    final = w.layer_norm("model.final_layernorm", c.layer_norm_eps)
    return llama_decoder(c, w, block, final_norm=final)


def phi3(c: Any, w: Weights) -> Decoder:
    d_head = c.hidden_size // c.num_attention_heads
    ends = np.cumsum(
        [0, c.num_attention_heads * d_head, c.num_key_value_heads * d_head, c.num_key_value_heads * d_head]
    )

    def block(b: Weights, i: int) -> Block:
        fused, both = b.linear("self_attn.qkv_proj"), b.linear("mlp.gate_up_proj")
        q, k, v = (fused.columns(ends[n], ends[n + 1]) for n in range(3))
        half = c.intermediate_size
        return llama_block(
            c, b, i, q=q, k=k, v=v, o=b.linear("self_attn.o_proj"), rotation=Rotation(d_head, theta(c)),
            mlp=gated(both.columns(0, half), both.columns(half, 2 * half), b.linear("mlp.down_proj"), silu),
            window=c.sliding_window,
        )  # fmt: skip

    return llama_decoder(c, w, block)


def stablelm(c: Any, w: Weights) -> Decoder:
    d_head = c.hidden_size // c.num_attention_heads

    def per_head(b: Weights, name: str, heads: int) -> Map:
        norms = [b.layer_norm(f"self_attn.{name}_layernorm.norms.{h}", c.layer_norm_eps) for h in range(heads)]
        return lambda x: np.stack([norm(x[:, h]) for h, norm in enumerate(norms)], axis=1)

    def block(b: Weights, i: int) -> Block:
        first, more = b.layer_norm("input_layernorm", c.layer_norm_eps), {}
        if c.qk_layernorm:
            more = {
                "norm_q": per_head(b, "q", c.num_attention_heads),
                "norm_k": per_head(b, "k", c.num_key_value_heads),
            }
        second = first if c.use_parallel_residual else b.layer_norm("post_attention_layernorm", c.layer_norm_eps)
        return llama_block(
            c, b, i, norm_1=first, norm_2=second, parallel=c.use_parallel_residual,
            rotation=Rotation(d_head // 2, theta(c)), **more,
        )  # fmt: skip

    return llama_decoder(c, w, block, final_norm=w.layer_norm("model.norm", c.layer_norm_eps))


def olmo(c: Any, w: Weights) -> Decoder:
    norm = layer_norm(1.0, 0.0, 1e-5)
    return llama_decoder(
        c, w, lambda b, i: llama_block(c, b, i, norm_1=norm, norm_2=norm, clip=c.clip_qkv), final_norm=norm
    )  # fmt: skip


def olmo2(c: Any, w: Weights) -> Decoder:
    def joined(norm: Map) -> Map:
        return lambda x: norm(x.reshape(len(x), -1)).reshape(x.shape)

    def block(b: Weights, i: int) -> Block:
        return llama_block(
            c, b, i, post_norm_1=b.rms_norm("post_attention_layernorm", c.rms_norm_eps),
            post_norm_2=b.rms_norm("post_feedforward_layernorm", c.rms_norm_eps),
            **{name: joined(norm) for name, norm in head_norms(c, b).items()},
        )  # fmt: skip

    return llama_decoder(c, w, block)


def cohere(c: Any, w: Weights) -> Decoder:
    d_head = c.hidden_size // c.num_attention_heads

    def block(b: Weights, i: int) -> Block:
        norm, more = b.layer_norm("input_layernorm", c.layer_norm_eps), {}
        if getattr(c, "use_qk_norm", False):
            more = {f"norm_{n}": b.layer_norm(f"self_attn.{n}_norm", c.layer_norm_eps) for n in ("q", "k")}
        turned = c.model_type == "cohere" or windowed(c, i) is not None
        return llama_block(
            c, b, i, norm_1=norm, norm_2=norm, parallel=True,
            rotation=Rotation(d_head, theta(c), pairs=True) if turned else None, **more,
        )  # fmt: skip

    final = w.layer_norm("model.norm", c.layer_norm_eps)
    return llama_decoder(c, w, block, final_norm=final, logit_scale=c.logit_scale)


def granite(c: Any, w: Weights, mlp: Callable[[Weights], Map] = gated_mlp) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        return llama_block(
            c, b, i, mlp=mlp(b), scaling=c.attention_multiplier, multiplier=c.residual_multiplier
        )  # fmt: skip

    rows = table(w, "model.embed_tokens.weight")
    return llama_decoder(
        c, w, block, embed=lambda ids: rows(ids) * c.embedding_multiplier, logit_scale=1 / c.logits_scaling
    )  # fmt: skip


def starcoder2(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        return llama_block(
            c, b, i, norm_1=b.layer_norm("input_layernorm", c.norm_epsilon), window=c.sliding_window,
            norm_2=b.layer_norm("post_attention_layernorm", c.norm_epsilon),
            mlp=two_layers(b.linear("mlp.c_fc"), b.linear("mlp.c_proj"), gelu_tanh),
        )  # fmt: skip

    return llama_decoder(c, w, block, final_norm=w.layer_norm("model.norm", c.norm_epsilon))


def smollm3(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        d_head = c.hidden_size // c.num_attention_heads
        return llama_block(c, b, i, rotation=Rotation(d_head, theta(c)) if c.no_rope_layers[i] else None)

    return llama_decoder(c, w, block)


def gpt_oss(c: Any, w: Weights) -> Decoder:
    def experts(b: Weights) -> Map:
        router = Linear(b("mlp.router.weight").T, b("mlp.router.bias"))
        up, up_bias = b("mlp.experts.gate_up_proj"), b("mlp.experts.gate_up_proj_bias")
        down, down_bias = b("mlp.experts.down_proj"), b("mlp.experts.down_proj_bias")

        def one(x: Array) -> Array:
            choice = router(x)
            best = np.argsort(-choice)[: c.num_experts_per_tok]
            out = np.zeros_like(x)
            for share, e in zip(softmax(choice[best]), best, strict=True):
                both = x @ up[e] + up_bias[e]
                gate, linear = np.minimum(both[::2], 7.0), np.clip(both[1::2], -7.0, 7.0)
                out += share * ((linear + 1) * gate * sigmoid(1.702 * gate) @ down[e] + down_bias[e])
            return out

        return lambda rows: np.array([one(x) for x in rows])

    return llama_decoder(
        c, w, lambda b, i: llama_block(c, b, i, mlp=experts(b), sinks=b("self_attn.sinks"))
    )  # fmt: skip
