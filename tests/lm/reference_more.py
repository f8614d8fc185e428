"""Reference decoders of further families, most of them Llama or an earlier form with a few differences."""

from typing import Any

import numpy as np

from tests.lm.reference_gpt import gpt_decoder, interleaved
from tests.lm.reference_llama import experts, gated_mlp, granite, head_norms, llama_block, llama_decoder, windowed
from tests.lm.reference_weights import Weights, head, table, theta
from tests.lm.references import (
    Block,
    Decoder,
    Map,
    Rotation,
    gated,
    gelu,
    gelu_tanh,
    layer_norm,
    relu_squared,
    sigmoid,
    silu,
    two_layers,
)  # fmt: skip


def codegen(c: Any, w: Weights) -> Decoder:
    local, blocks = c.n_embd // 4, []
    for i in range(c.n_layer):
        b = w.below(f"transformer.h.{i}")
        fused, norm = b.linear("attn.qkv_proj"), b.layer_norm("ln_1", c.layer_norm_epsilon)
        # Written for four processors: for each of them its queries, then its values, then its keys.
        q, v, k = (
            fused.chosen([(3 * part + n) * local + j for part in range(4) for j in range(local)]) for n in range(3)
        )
        blocks.append(
            Block(
                q, k, v, b.linear("attn.out_proj"), c.n_head, c.n_head,
                two_layers(b.linear("mlp.fc_in"), b.linear("mlp.fc_out"), gelu_tanh), norm, norm,
                rotation=Rotation(c.rotary_dim, 10_000.0, pairs=True), parallel=True,
            )
        )  # fmt: skip
    return gpt_decoder(c, w, blocks, positions=False)


def gpt_bigcode(c: Any, w: Weights) -> Decoder:
    heads, d = c.n_head, c.n_embd
    d_head, blocks = d // heads, []
    for i in range(c.n_layer):
        b = w.below(f"transformer.h.{i}")
        fused = b.linear("attn.c_attn")
        if c.multi_query:
            qkv = [fused.columns(0, d), fused.columns(d, d + d_head), fused.columns(d + d_head, d + 2 * d_head)]
        else:
            qkv = interleaved(fused, heads, d_head)
        blocks.append(
            Block(
                *qkv, b.linear("attn.c_proj"), heads, 1 if c.multi_query else heads,
                two_layers(b.linear("mlp.c_fc"), b.linear("mlp.c_proj"), gelu_tanh),
                b.layer_norm("ln_1", c.layer_norm_epsilon), b.layer_norm("ln_2", c.layer_norm_epsilon),
            )
        )  # fmt: skip
    return gpt_decoder(c, w, blocks, positions=True)


def biogpt(c: Any, w: Weights) -> Decoder:
    m, blocks = w.below("biogpt"), []
    for i in range(c.num_hidden_layers):
        b = m.below(f"layers.{i}")
        blocks.append(
            Block(
                *(b.linear(f"self_attn.{n}_proj") for n in ("q", "k", "v", "out")), c.num_attention_heads,
                c.num_attention_heads, two_layers(b.linear("fc1"), b.linear("fc2"), gelu),
                b.layer_norm("self_attn_layer_norm", 1e-5), b.layer_norm("final_layer_norm", 1e-5),
            )
        )  # fmt: skip
    rows = table(m, "embed_tokens.weight")
    return Decoder(
        blocks, lambda ids: rows(ids) * c.hidden_size**0.5, m.layer_norm("layer_norm", 1e-5),
        w.linear("output_projection"), lambda n: m("embed_positions.weight")[2 : n + 2],
    )  # fmt: skip


def persimmon(c: Any, w: Weights) -> Decoder:
    heads, d_head, eps = c.num_attention_heads, c.hidden_size // c.num_attention_heads, c.layer_norm_eps
    m, blocks = w.below("model"), []
    for i in range(c.num_hidden_layers):
        b = m.below(f"layers.{i}")
        blocks.append(
            Block(
                *interleaved(b.linear("self_attn.query_key_value"), heads, d_head), b.linear("self_attn.dense"),
                heads, heads, two_layers(b.linear("mlp.dense_h_to_4h"), b.linear("mlp.dense_4h_to_h"), relu_squared),
                b.layer_norm("input_layernorm", eps), b.layer_norm("post_attention_layernorm", eps),
                norm_q=b.layer_norm("self_attn.q_layernorm", eps), norm_k=b.layer_norm("self_attn.k_layernorm", eps),
                rotation=Rotation(d_head // 2, theta(c)),
            )
        )  # fmt: skip
    return Decoder(blocks, table(m, "embed_tokens.weight"), m.layer_norm("final_layernorm", eps), head(w))


def arcee(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        return llama_block(c, b, i, mlp=two_layers(b.linear("mlp.up_proj"), b.linear("mlp.down_proj"), relu_squared))

    return llama_decoder(c, w, block)


def turned_in_pairs(c: Any, w: Weights) -> Decoder:
    rotation = Rotation(c.head_dim, theta(c), pairs=True)
    return llama_decoder(c, w, lambda b, i: llama_block(c, b, i, rotation=rotation))


def exaone4(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        turned = c.sliding_window is None or windowed(c, i) is not None
        return llama_block(
            c, b, i, post_norm_1=b.rms_norm("post_attention_layernorm", c.rms_norm_eps),
            post_norm_2=b.rms_norm("post_feedforward_layernorm", c.rms_norm_eps), **head_norms(c, b),
            rotation=Rotation(c.head_dim, theta(c, i)) if turned else None,
        )  # fmt: skip

    return llama_decoder(c, w, block)


def glm(c: Any, w: Weights) -> Decoder:
    half = c.intermediate_size

    def block(b: Weights, i: int) -> Block:
        def norm(name: str) -> Map:
            return b.rms_norm(name, c.rms_norm_eps)

        both, more = b.linear("mlp.gate_up_proj"), {}
        if b.has("post_mlp_layernorm.weight"):
            more = {
                "post_norm_1": norm("post_self_attn_layernorm"), "post_norm_2": norm("post_mlp_layernorm"),
                "norm_1": norm("input_layernorm"), "norm_2": norm("post_attention_layernorm"),
            }  # fmt: skip
        return llama_block(
            c, b, i, rotation=Rotation(c.head_dim // 2, theta(c), pairs=True), **more,
            mlp=gated(both.columns(0, half), both.columns(half, 2 * half), b.linear("mlp.down_proj"), silu),
        )  # fmt: skip

    return llama_decoder(c, w, block)


def granitemoe(c: Any, w: Weights) -> Decoder:
    def mlp(b: Weights) -> Map:
        return experts(b, "block_sparse_moe.router", True, c.num_experts_per_tok, "block_sparse_moe")

    return granite(c, w, mlp)


def hunyuan(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        norms = {
            f"norm_{name[0]}": b.rms_norm(f"self_attn.{name}_layernorm", c.rms_norm_eps) for name in ("query", "key")
        }
        return llama_block(c, b, i, norm_after_rotation=True, **norms)

    return llama_decoder(c, w, block)


def nemotron(c: Any, w: Weights) -> Decoder:
    def norm(b: Weights, name: str) -> Map:
        return layer_norm(b(f"{name}.weight") + 1, b(f"{name}.bias"), c.norm_eps)

    def block(b: Weights, i: int) -> Block:
        return llama_block(
            c, b, i, norm_1=norm(b, "input_layernorm"), norm_2=norm(b, "post_attention_layernorm"),
            mlp=two_layers(b.linear("mlp.up_proj"), b.linear("mlp.down_proj"), relu_squared),
            rotation=Rotation(c.head_dim // 2, theta(c)),
        )  # fmt: skip

    return llama_decoder(c, w, block, final_norm=norm(w, "model.norm"))


def olmoe(c: Any, w: Weights) -> Decoder:
    def clipped(map_: Map) -> Map:
        return lambda x: np.clip(map_(x), -c.clip_qkv, c.clip_qkv)

    def joined(norm: Map) -> Map:
        return lambda x: norm(x.reshape(len(x), -1)).reshape(x.shape)

    def block(b: Weights, i: int) -> Block:
        norms = {name: clipped(joined(norm)) for name, norm in head_norms(c, b).items()}
        return llama_block(
            c, b, i, v=clipped(b.linear("self_attn.v_proj")), **norms,
            mlp=experts(b, "mlp.gate", c.norm_topk_prob, c.num_experts_per_tok),
        )  # fmt: skip

    return llama_decoder(c, w, block)


def qwen2_moe(c: Any, w: Weights) -> Decoder:
    def mixed(b: Weights) -> Map:
        chosen = experts(b, "mlp.gate", c.norm_topk_prob, c.num_experts_per_tok)
        for_all, gate = gated_mlp(b.below("mlp.shared_expert"), below=""), b("mlp.shared_expert_gate.weight").T
        return lambda x: chosen(x) + sigmoid(x @ gate) * for_all(x)

    def block(b: Weights, i: int) -> Block:
        return llama_block(c, b, i, mlp=mixed(b) if b.has("mlp.gate.weight") else gated_mlp(b))

    return llama_decoder(c, w, block)
