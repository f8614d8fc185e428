"""The reference decoders of every tiny model, built from the names of its weights."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.lm.references import (
    Array,
    Block,
    Decoder,
    Linear,
    Map,
    Rotation,
    gated,
    gelu,
    gelu_tanh,
    layer_norm,
    relu,
    rms_norm,
    same,
    sigmoid,
    silu,
    softmax,
    two_layers,
)  # fmt: skip


class Weights:
    """Raw weights by name, in float64, below a prefix."""

    def __init__(self, raw: Mapping[str, Any], prefix: str = "") -> None:
        self.raw, self.prefix = raw, prefix

    def below(self, prefix: str) -> "Weights":
        return Weights(self.raw, f"{self.prefix}{prefix}.")

    def __call__(self, name: str) -> Array:
        return np.asarray(self.raw[self.prefix + name].double().numpy())

    def has(self, name: str) -> bool:
        return self.prefix + name in self.raw

    def linear(self, name: str, transposed: bool = True) -> Linear:
        weight = self(f"{name}.weight")
        bias = self(f"{name}.bias") if self.has(f"{name}.bias") else None
        return Linear(weight.T if transposed else weight, bias)

    def layer_norm(self, name: str, eps: float) -> Map:
        return layer_norm(self(f"{name}.weight"), self(f"{name}.bias") if self.has(f"{name}.bias") else 0.0, eps)

    def rms_norm(self, name: str, eps: float, offset: float = 0.0) -> Map:
        return rms_norm(self(f"{name}.weight") + offset, eps)


def reference(model_type: str, config: Any, raw: Mapping[str, Any]) -> Decoder:
    """The reference decoder of a model."""
    return BUILDERS[model_type](config, Weights(raw))


def _table(w: Weights, name: str) -> Callable[[Array], Array]:
    return lambda ids: w(name)[ids]


def _head(w: Weights) -> Linear:
    return w.linear("lm_head")


def _theta(config: Any, layer: int = 0) -> float:
    """The base of the rotation; some families have one for layers with a window and one for the others."""
    parameters = config.rope_parameters
    return float(parameters.get("rope_theta") or parameters[config.layer_types[layer]]["rope_theta"])


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
    return _gpt(c, w, blocks, positions=True)


def _gpt(c: Any, w: Weights, blocks: list[Block], positions: bool) -> Decoder:
    final = w.layer_norm("transformer.ln_f", c.layer_norm_epsilon)
    table = (lambda n: w("transformer.wpe.weight")[:n]) if positions else None
    return Decoder(blocks, _table(w, "transformer.wte.weight"), final, _head(w), table)


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
    return _gpt(c, w, blocks, positions=True)


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
    return _gpt(c, w, blocks, positions=False)


def _interleaved(fused: Linear, heads: int, d_head: int) -> list[Linear]:
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
                *_interleaved(b.linear("attention.query_key_value"), heads, d_head), b.linear("attention.dense"),
                heads, heads, two_layers(b.linear("mlp.dense_h_to_4h"), b.linear("mlp.dense_4h_to_h"), gelu),
                b.layer_norm("input_layernorm", c.layer_norm_eps),
                b.layer_norm("post_attention_layernorm", c.layer_norm_eps),
                rotation=Rotation(d_head // 2, _theta(c)), parallel=c.use_parallel_residual,
            )
        )  # fmt: skip
    final = w.layer_norm("gpt_neox.final_layer_norm", c.layer_norm_eps)
    return Decoder(blocks, _table(w, "gpt_neox.embed_in.weight"), final, _head(w))


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
    table, head = _table(d, "embed_tokens.weight"), _head(w)
    project_in, project_out = (
        (d.linear(name) if d.has(f"{name}.weight") else same) for name in ("project_in", "project_out")
    )
    return Decoder(
        blocks, lambda ids: project_in(table(ids)),
        d.layer_norm("final_layer_norm", 1e-5) if c.do_layer_norm_before else same,
        lambda x: head(project_out(x)), lambda n: d("embed_positions.weight")[2 : n + 2],
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
                *_interleaved(b.linear("self_attention.query_key_value"), heads, c.hidden_size // heads),
                b.linear("self_attention.dense"), heads, heads,
                two_layers(b.linear("mlp.dense_h_to_4h"), b.linear("mlp.dense_4h_to_h"), gelu_tanh),
                b.layer_norm("input_layernorm", eps), b.layer_norm("post_attention_layernorm", eps),
                slopes=_alibi_slopes(heads),
            )
        )  # fmt: skip
    t = w.below("transformer")
    first, table = t.layer_norm("word_embeddings_layernorm", eps), _table(t, "word_embeddings.weight")
    return Decoder(blocks, lambda ids: first(table(ids)), t.layer_norm("ln_f", eps), _head(w))


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
                rotation=None if c.alibi else Rotation(d, _theta(c)),
                slopes=_alibi_slopes(heads) / math.sqrt(d) if c.alibi else None,
            )
        )  # fmt: skip
    t = w.below("transformer")
    return Decoder(blocks, _table(t, "word_embeddings.weight"), t.layer_norm("ln_f", eps), _head(w))


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
    return Decoder(blocks, _table(t, "wte.weight"), t.layer_norm("norm_f", eps), _head(w))


def _gated_mlp(b: Weights, activation: Map = silu) -> Map:
    return gated(b.linear("mlp.gate_proj"), b.linear("mlp.up_proj"), b.linear("mlp.down_proj"), activation)


def _windowed(c: Any, i: int) -> int | None:
    kinds = getattr(c, "layer_types", None)
    return c.sliding_window if kinds is not None and kinds[i] == "sliding_attention" else None


NORMS = {"norm_1": "input_layernorm", "norm_2": "post_attention_layernorm"}


def _llama_block(c: Any, b: Weights, i: int, **changes: Any) -> Block:
    d_head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    parts: dict[str, Any] = {
        "heads": c.num_attention_heads,
        "kv_heads": c.num_key_value_heads,
        "rotation": Rotation(d_head, _theta(c, i)),
        "window": _windowed(c, i),
    }
    for name in "qkvo":
        if name not in changes:
            parts[name] = b.linear(f"self_attn.{name}_proj")
    for name, weight in () if "post_norm_1" in changes else NORMS.items():
        if name not in changes:
            parts[name] = b.rms_norm(weight, c.rms_norm_eps)
    if "mlp" not in changes:
        parts["mlp"] = _gated_mlp(b)
    return Block(**(parts | changes))


def _llama_decoder(c: Any, w: Weights, block: Callable[[Weights, int], Block], **changes: Any) -> Decoder:
    m = w.below("model")
    blocks = [block(m.below(f"layers.{i}"), i) for i in range(c.num_hidden_layers)]
    parts: dict[str, Any] = {"embed": _table(m, "embed_tokens.weight"), "unembed": _head(w)}
    if "final_norm" not in changes:
        parts["final_norm"] = m.rms_norm("norm", c.rms_norm_eps)
    return Decoder(blocks, **(parts | changes))


def llama(c: Any, w: Weights) -> Decoder:
    return _llama_decoder(c, w, lambda b, i: _llama_block(c, b, i))


def mistral(c: Any, w: Weights) -> Decoder:
    return _llama_decoder(c, w, lambda b, i: _llama_block(c, b, i, window=c.sliding_window))


def _experts(c: Any, b: Weights, gate: str, renormalised: bool, n: int) -> Map:
    """A mixture: the best experts of each token, weighted by the softmax over all of them."""
    router, fused, down = b(f"{gate}.weight").T, b("mlp.experts.gate_up_proj"), b("mlp.experts.down_proj")

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
    return _llama_decoder(
        c, w, lambda b, i: _llama_block(c, b, i, mlp=_experts(c, b, "mlp.gate", True, c.num_experts_per_tok))
    )  # fmt: skip


def _head_norms(c: Any, b: Weights, offset: float = 0.0) -> dict[str, Map]:
    return {f"norm_{n}": b.rms_norm(f"self_attn.{n}_norm", c.rms_norm_eps, offset) for n in ("q", "k")}


def qwen3(c: Any, w: Weights) -> Decoder:
    return _llama_decoder(c, w, lambda b, i: _llama_block(c, b, i, **_head_norms(c, b)))


def qwen3_moe(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        dense = i in c.mlp_only_layers
        mlp = _gated_mlp(b) if dense else _experts(c, b, "mlp.gate", c.norm_topk_prob, c.num_experts_per_tok)
        return _llama_block(c, b, i, mlp=mlp, **_head_norms(c, b))

    return _llama_decoder(c, w, block)


def _gemma_decoder(c: Any, w: Weights, block: Callable[[Weights, int], Block], **changes: Any) -> Decoder:
    table = _table(w, "model.embed_tokens.weight")
    return _llama_decoder(
        c, w, block, embed=lambda ids: table(ids) * math.sqrt(c.hidden_size),
        final_norm=w.rms_norm("model.norm", c.rms_norm_eps, 1.0), **changes,
    )  # fmt: skip


def gemma(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        return _llama_block(
            c, b, i, mlp=_gated_mlp(b, gelu_tanh), norm_1=b.rms_norm("input_layernorm", c.rms_norm_eps, 1.0),
            norm_2=b.rms_norm("post_attention_layernorm", c.rms_norm_eps, 1.0),
        )  # fmt: skip

    return _gemma_decoder(c, w, block)


def gemma2(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        def norm(name: str) -> Map:
            return b.rms_norm(name, c.rms_norm_eps, 1.0)

        more = _head_norms(c, b, 1.0) if b.has("self_attn.q_norm.weight") else {}
        return _llama_block(
            c, b, i, mlp=_gated_mlp(b, gelu_tanh), norm_1=norm("input_layernorm"),
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
        return _llama_block(
            c, b, i, o=b.linear("self_attn.dense"), mlp=two_layers(b.linear("mlp.fc1"), b.linear("mlp.fc2"), gelu_tanh),
            norm_1=norm, norm_2=norm, parallel=True, rotation=Rotation(d_head // 2, _theta(c)), **more,
        )  # fmt: skip

    final = w.layer_norm("model.final_layernorm", c.layer_norm_eps)
    return _llama_decoder(c, w, block, final_norm=final)


def phi3(c: Any, w: Weights) -> Decoder:
    d_head = c.hidden_size // c.num_attention_heads
    ends = np.cumsum(
        [0, c.num_attention_heads * d_head, c.num_key_value_heads * d_head, c.num_key_value_heads * d_head]
    )

    def block(b: Weights, i: int) -> Block:
        fused, both = b.linear("self_attn.qkv_proj"), b.linear("mlp.gate_up_proj")
        q, k, v = (fused.columns(ends[n], ends[n + 1]) for n in range(3))
        half = c.intermediate_size
        return _llama_block(
            c, b, i, q=q, k=k, v=v, o=b.linear("self_attn.o_proj"), rotation=Rotation(d_head, _theta(c)),
            mlp=gated(both.columns(0, half), both.columns(half, 2 * half), b.linear("mlp.down_proj"), silu),
            window=c.sliding_window,
        )  # fmt: skip

    return _llama_decoder(c, w, block)


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
        return _llama_block(
            c, b, i, norm_1=first, norm_2=second, parallel=c.use_parallel_residual,
            rotation=Rotation(d_head // 2, _theta(c)), **more,
        )  # fmt: skip

    return _llama_decoder(c, w, block, final_norm=w.layer_norm("model.norm", c.layer_norm_eps))


def olmo(c: Any, w: Weights) -> Decoder:
    norm = layer_norm(1.0, 0.0, 1e-5)
    return _llama_decoder(
        c, w, lambda b, i: _llama_block(c, b, i, norm_1=norm, norm_2=norm, clip=c.clip_qkv), final_norm=norm
    )  # fmt: skip


def olmo2(c: Any, w: Weights) -> Decoder:
    def joined(norm: Map) -> Map:
        return lambda x: norm(x.reshape(len(x), -1)).reshape(x.shape)

    def block(b: Weights, i: int) -> Block:
        return _llama_block(
            c, b, i, post_norm_1=b.rms_norm("post_attention_layernorm", c.rms_norm_eps),
            post_norm_2=b.rms_norm("post_feedforward_layernorm", c.rms_norm_eps),
            **{name: joined(norm) for name, norm in _head_norms(c, b).items()},
        )  # fmt: skip

    return _llama_decoder(c, w, block)


def cohere(c: Any, w: Weights) -> Decoder:
    d_head = c.hidden_size // c.num_attention_heads

    def block(b: Weights, i: int) -> Block:
        norm, more = b.layer_norm("input_layernorm", c.layer_norm_eps), {}
        if getattr(c, "use_qk_norm", False):
            more = {f"norm_{n}": b.layer_norm(f"self_attn.{n}_norm", c.layer_norm_eps) for n in ("q", "k")}
        turned = c.model_type == "cohere" or _windowed(c, i) is not None
        return _llama_block(
            c, b, i, norm_1=norm, norm_2=norm, parallel=True,
            rotation=Rotation(d_head, _theta(c), pairs=True) if turned else None, **more,
        )  # fmt: skip

    final = w.layer_norm("model.norm", c.layer_norm_eps)
    return _llama_decoder(c, w, block, final_norm=final, logit_scale=c.logit_scale)


def granite(c: Any, w: Weights) -> Decoder:
    table = _table(w, "model.embed_tokens.weight")
    return _llama_decoder(
        c, w, lambda b, i: _llama_block(c, b, i, scaling=c.attention_multiplier, multiplier=c.residual_multiplier),
        embed=lambda ids: table(ids) * c.embedding_multiplier, logit_scale=1 / c.logits_scaling,
    )  # fmt: skip


def starcoder2(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        return _llama_block(
            c, b, i, norm_1=b.layer_norm("input_layernorm", c.norm_epsilon), window=c.sliding_window,
            norm_2=b.layer_norm("post_attention_layernorm", c.norm_epsilon),
            mlp=two_layers(b.linear("mlp.c_fc"), b.linear("mlp.c_proj"), gelu_tanh),
        )  # fmt: skip

    return _llama_decoder(c, w, block, final_norm=w.layer_norm("model.norm", c.norm_epsilon))


def smollm3(c: Any, w: Weights) -> Decoder:
    def block(b: Weights, i: int) -> Block:
        d_head = c.hidden_size // c.num_attention_heads
        return _llama_block(c, b, i, rotation=Rotation(d_head, _theta(c)) if c.no_rope_layers[i] else None)

    return _llama_decoder(c, w, block)


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

    return _llama_decoder(
        c, w, lambda b, i: _llama_block(c, b, i, mlp=experts(b), sinks=b("self_attn.sinks"))
    )  # fmt: skip


BUILDERS: dict[str, Callable[[Any, Weights], Decoder]] = {
    "bloom": bloom, "cohere": cohere, "cohere2": cohere, "falcon": falcon, "gemma": gemma, "gemma2": gemma2,
    "gemma3_text": gemma2, "gpt2": gpt2, "gpt_neo": gpt_neo, "gpt_neox": gpt_neox, "gpt_oss": gpt_oss, "gptj": gptj,
    "granite": granite, "llama": llama, "mistral": mistral, "mixtral": mixtral, "mpt": mpt, "olmo": olmo,
    "olmo2": olmo2, "olmo3": olmo2, "opt": opt, "phi": phi, "phi3": phi3, "qwen2": llama, "qwen3": qwen3,
    "qwen3_moe": qwen3_moe, "smollm3": smollm3, "stablelm": stablelm, "starcoder2": starcoder2,
}  # fmt: skip
