"""Reference decoders with learned positions, ALiBi, or fused projections: the families before Llama."""

import math
from typing import Any

import numpy as np

from tests.lm.reference_weights import Weights, head, table, theta
from tests.lm.references import (
    Array,
    Block,
    Decoder,
    Linear,
    Rotation,
    gelu,
    gelu_tanh,
    relu,
    same,
    two_layers,
)  # fmt: skip


def gpt2(c: Any, w: Weights) -> Decoder:
    blocks = []
    for i in range(c.n_layer):
        b, d = w.below(f"transformer.h.{i}"), c.n_embd
        fused = b.linear("attn.c_attn", transposed=False)
        blocks.append(
            Block(
                *(fused.columns(n * d, (n + 1) * d) for n in range(3)), b.linear("attn.c_proj", False),
                c.n_head, c.n_head,
                two_layers(b.linear("mlp.c_fc", False), b.linear("mlp.c_proj", False), gelu_tanh),
                b.layer_norm("ln_1", c.layer_norm_epsilon), b.layer_norm("ln_2", c.layer_norm_epsilon),
                scaling=(d // c.n_head) ** -0.5 / (i + 1 if c.scale_attn_by_inverse_layer_idx else 1),
            )
        )  # fmt: skip
    return gpt_decoder(c, w, blocks, positions=True)


def gpt_decoder(c: Any, w: Weights, blocks: list[Block], positions: bool) -> Decoder:
    final = w.layer_norm("transformer.ln_f", c.layer_norm_epsilon)
    rows = (lambda n: w("transformer.wpe.weight")[:n]) if positions else None
    return Decoder(blocks, table(w, "transformer.wte.weight"), final, head(w), rows)


def gpt_neo(c: Any, w: Weights) -> Decoder:
    blocks = []
    for i in range(c.num_layers):
        b = w.below(f"transformer.h.{i}")
        blocks.append(
            Block(
                *(b.linear(f"attn.attention.{n}_proj") for n in ("q", "k", "v", "out")), c.num_heads, c.num_heads,
                two_layers(b.linear("mlp.c_fc"), b.linear("mlp.c_proj"), gelu_tanh),
                b.layer_norm("ln_1", c.layer_norm_epsilon), b.layer_norm("ln_2", c.layer_norm_epsilon),
                scaling=1.0, window=c.window_size if i % 2 else None,
            )
        )  # fmt: skip
    return gpt_decoder(c, w, blocks, positions=True)


def gptj(c: Any, w: Weights) -> Decoder:
    blocks = []
    for i in range(c.n_layer):
        b = w.below(f"transformer.h.{i}")
        norm = b.layer_norm("ln_1", c.layer_norm_epsilon)
        blocks.append(
            Block(
                *(b.linear(f"attn.{n}_proj") for n in ("q", "k", "v", "out")), c.n_head, c.n_head,
                two_layers(b.linear("mlp.fc_in"), b.linear("mlp.fc_out"), gelu_tanh), norm, norm,
                rotation=Rotation(c.rotary_dim, 10_000.0, pairs=True), parallel=True,
            )
        )  # fmt: skip
    return gpt_decoder(c, w, blocks, positions=False)


def interleaved(fused: Linear, heads: int, d_head: int) -> list[Linear]:
    """q, k and v of a fused map whose columns are q, k, v of head 0, then q, k, v of head 1, and so on."""
    starts = [[(3 * h + n) * d_head for h in range(heads)] for n in range(3)]
    return [fused.chosen([s + j for s in each for j in range(d_head)]) for each in starts]


def gpt_neox(c: Any, w: Weights) -> Decoder:
    heads, d_head = c.num_attention_heads, c.hidden_size // c.num_attention_heads
    blocks = []
    for i in range(c.num_hidden_layers):
        b = w.below(f"gpt_neox.layers.{i}")
        blocks.append(
            Block(
                *interleaved(b.linear("attention.query_key_value"), heads, d_head), b.linear("attention.dense"),
                heads, heads, two_layers(b.linear("mlp.dense_h_to_4h"), b.linear("mlp.dense_4h_to_h"), gelu),
                b.layer_norm("input_layernorm", c.layer_norm_eps),
                b.layer_norm("post_attention_layernorm", c.layer_norm_eps),
                rotation=Rotation(d_head // 2, theta(c)), parallel=c.use_parallel_residual,
            )
        )  # fmt: skip
    final = w.layer_norm("gpt_neox.final_layer_norm", c.layer_norm_eps)
    return Decoder(blocks, table(w, "gpt_neox.embed_in.weight"), final, head(w))


def opt(c: Any, w: Weights) -> Decoder:
    d, blocks = w.below("model.decoder"), []
    for i in range(c.num_hidden_layers):
        b = d.below(f"layers.{i}")
        norms = b.layer_norm("self_attn_layer_norm", 1e-5), b.layer_norm("final_layer_norm", 1e-5)
        where = ("norm_1", "norm_2") if c.do_layer_norm_before else ("sum_norm_1", "sum_norm_2")
        blocks.append(
            Block(
                *(b.linear(f"self_attn.{n}_proj") for n in ("q", "k", "v", "out")), c.num_attention_heads,
                c.num_attention_heads, two_layers(b.linear("fc1"), b.linear("fc2"), relu),
                **dict(zip(where, norms, strict=True)),
            )
        )  # fmt: skip
    rows, out = table(d, "embed_tokens.weight"), head(w)
    project_in, project_out = (
        (d.linear(name) if d.has(f"{name}.weight") else same) for name in ("project_in", "project_out")
    )
    return Decoder(
        blocks, lambda ids: project_in(rows(ids)),
        d.layer_norm("final_layer_norm", 1e-5) if c.do_layer_norm_before else same,
        lambda x: out(project_out(x)), lambda n: d("embed_positions.weight")[2 : n + 2],
    )  # fmt: skip


def _alibi_slopes(heads: int) -> Array:
    """Press et al. 2022, section 3: a geometric sequence for a power of two; others are filled up from the next."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    finer = [2 ** (-8 * (i + 1) / (2 * power)) for i in range(2 * power)]
    return np.array(slopes + finer[::2][: heads - power])


def bloom(c: Any, w: Weights) -> Decoder:
    blocks, heads = [], c.n_head
    for i in range(c.n_layer):
        b, eps = w.below(f"transformer.h.{i}"), c.layer_norm_epsilon
        blocks.append(
            Block(
                *interleaved(b.linear("self_attention.query_key_value"), heads, c.hidden_size // heads),
                b.linear("self_attention.dense"), heads, heads,
                two_layers(b.linear("mlp.dense_h_to_4h"), b.linear("mlp.dense_4h_to_h"), gelu_tanh),
                b.layer_norm("input_layernorm", eps), b.layer_norm("post_attention_layernorm", eps),
                slopes=_alibi_slopes(heads),
            )
        )  # fmt: skip
    t = w.below("transformer")
    first, rows = t.layer_norm("word_embeddings_layernorm", eps), table(t, "word_embeddings.weight")
    return Decoder(blocks, lambda ids: first(rows(ids)), t.layer_norm("ln_f", eps), head(w))


def falcon(c: Any, w: Weights) -> Decoder:
    heads, d_head, eps = c.num_attention_heads, c.hidden_size // c.num_attention_heads, c.layer_norm_epsilon
    kv_heads = c.num_kv_heads if c.new_decoder_architecture else 1 if c.multi_query else heads
    parallel, blocks = c.new_decoder_architecture or c.parallel_attn, []
    for i in range(c.num_hidden_layers):
        b = w.below(f"transformer.h.{i}")
        fused = b.linear("self_attention.query_key_value")
        # For each kv head: its query heads, its key, its value.
        group, d = heads // kv_heads, d_head
        starts = [g * (group + 2) * d for g in range(kv_heads)]
        q = fused.chosen([s + j for s in starts for j in range(group * d)])
        k = fused.chosen([s + group * d + j for s in starts for j in range(d)])
        v = fused.chosen([s + (group + 1) * d + j for s in starts for j in range(d)])
        names = ("ln_attn", "ln_mlp") if b.has("ln_mlp.weight") else ("input_layernorm", "post_attention_layernorm")
        second = names[1] if b.has(f"{names[1]}.weight") else names[0]
        blocks.append(
            Block(
                q, k, v, b.linear("self_attention.dense"), heads, kv_heads,
                two_layers(b.linear("mlp.dense_h_to_4h"), b.linear("mlp.dense_4h_to_h"), gelu),
                b.layer_norm(names[0], eps), b.layer_norm(second, eps), parallel=parallel,
                rotation=None if c.alibi else Rotation(d, theta(c)),
                slopes=_alibi_slopes(heads) / math.sqrt(d) if c.alibi else None,
            )
        )  # fmt: skip
    t = w.below("transformer")
    return Decoder(blocks, table(t, "word_embeddings.weight"), t.layer_norm("ln_f", eps), head(w))


def mpt(c: Any, w: Weights) -> Decoder:
    blocks, heads = [], c.n_heads
    power = 2 ** math.ceil(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    # With a head count that is no power of two, every second slope comes first.
    slopes = slopes if power == heads else (slopes[1::2] + slopes[::2])[:heads]
    for i in range(c.n_layers):
        b, eps, d = w.below(f"transformer.blocks.{i}"), c.layer_norm_epsilon, c.d_model
        fused = b.linear("attn.Wqkv")
        blocks.append(
            Block(
                *(fused.columns(n * d, (n + 1) * d) for n in range(3)), b.linear("attn.out_proj"), heads, heads,
                two_layers(b.linear("ffn.up_proj"), b.linear("ffn.down_proj"), gelu), b.layer_norm("norm_1", eps),
                b.layer_norm("norm_2", eps), slopes=np.array(slopes), clip=c.attn_config.clip_qkv,
                scaling=c.attn_config.softmax_scale,
            )
        )  # fmt: skip
    t = w.below("transformer")
    return Decoder(blocks, table(t, "wte.weight"), t.layer_norm("norm_f", eps), head(w))
