"""One head and two tokens, worked out on paper.

A GPT-2 of width 2 with one layer, one head and an MLP that writes nothing. Layer norms have gain 1 and no bias, so that
(3, 1) becomes (1, −1) and (1, 3) becomes (−1, 1).

    embeddings          x_0 = (3, 1)      x_1 = (1, 3)                      positions: 0
    W_Q = 1, W_K = (√2 ln 3 / 4) · 1      scores of reader 1: −ln 3 / 2 and ln 3 / 2, so A_1 = (1/4, 3/4)
    W_V = diag(2, 1)    v_0 = (2, −1)     v_1 = (−2, 1)
    W_O = [1 0; 1 3]    m_0 = (1, −3)     m_1 = (−1, 3)                     both of length √10
    reader 1            o = 1/4 m_0 + 3/4 m_1 = (−1/2, 3/2)                 stream (1/2, 9/2)
    final norm          mean 5/2, deviation 2: (−1, 1)
    W_U                 columns (1, 0) and (0, 2): logits −1 and 2
    attribution         embedding centred (−1, 1) / 2, head centred (−1, 1) / 2: 1 each to logit 1, −1/2 each to logit 0
"""

import math
from functools import cache
from typing import Any

import pytest
import torch

from app.analysis.attribution import attribute
from app.analysis.heads import scan_heads
from app.analysis.ledger import check_ledger
from app.analysis.messages import delivered_norms, head_write_norms, message_norms, messages
from app.analysis.predictions import last_logits
from app.analysis.stream import attn_write_norms, mlp_write_norms, stream_norms
from app.lm.loading import LoadedTransformer
from app.lm.trace import Trace
from tests.lm.tiny import BY_NAME, build
from tests.lm.tiny_loaded import load

# The norms' eps, 1e-12 here, and float32.
close = {"abs": 2e-6}


def near(values: Any) -> Any:
    return pytest.approx(values, **close)


@cache
def by_hand() -> tuple[LoadedTransformer, Trace]:
    model = build(
        BY_NAME["gpt2"].config(n_embd=2, n_head=1, n_layer=1, n_inner=2, layer_norm_epsilon=1e-12, vocab_size=2,
                               tie_word_embeddings=False)
    )  # fmt: skip
    for name, parameter in model.named_parameters():
        parameter.data.fill_(1.0 if "ln_" in name and name.endswith("weight") else 0.0)
    attention, scale = model.transformer.h[0].attn, math.sqrt(2) * math.log(3) / 4
    w_q, w_k, w_v = torch.eye(2), scale * torch.eye(2), torch.diag(torch.tensor([2.0, 1.0]))
    attention.c_attn.weight.data.copy_(torch.cat([w_q, w_k, w_v], dim=1))
    attention.c_proj.weight.data.copy_(torch.tensor([[1.0, 0.0], [1.0, 3.0]]))
    model.transformer.wte.weight.data.copy_(torch.tensor([[3.0, 1.0], [1.0, 3.0]]))
    model.lm_head.weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    loaded = load(model)
    return loaded, loaded.record((0, 1))


def test_the_pattern() -> None:
    _, trace = by_hand()
    assert trace.pattern(0)[0].tolist() == [near([1.0, 0.0]), near([0.25, 0.75])]


def test_the_messages_and_their_norms() -> None:
    _, trace = by_hand()
    assert messages(trace, 0, 0).tolist() == [near([1.0, -3.0]), near([-1.0, 3.0])]
    assert message_norms(trace, 0)[0].tolist() == near([math.sqrt(10)] * 2)
    assert delivered_norms(trace, 0, 0)[1].tolist() == near([math.sqrt(10) / 4, math.sqrt(10) * 3 / 4])


def test_what_the_head_writes() -> None:
    _, trace = by_hand()
    assert trace.attn_write[0].tolist() == [near([1.0, -3.0]), near([-0.5, 1.5])]
    assert head_write_norms(trace, 0)[0].tolist() == near([math.sqrt(10), math.sqrt(2.5)])


def test_the_stream_and_its_norms() -> None:
    _, trace = by_hand()
    assert trace.stream[1].tolist() == [near([4.0, -2.0]), near([0.5, 4.5])]
    assert stream_norms(trace)[:, 1].tolist() == near([math.sqrt(10), math.sqrt(20.5)])
    assert attn_write_norms(trace)[0].tolist() == near([math.sqrt(10), math.sqrt(2.5)])
    assert mlp_write_norms(trace)[0].tolist() == [0.0, 0.0]


def test_the_logits() -> None:
    _, trace = by_hand()
    assert last_logits(trace, 1, 2)[0].tolist() == near([-1.0, 2.0])


def test_the_attribution() -> None:
    _, trace = by_hand()
    for target, share in ((0, -0.5), (1, 1.0)):
        parts = attribute(trace, 1, target)
        assert (float(parts.embed), float(parts.heads[0, 0])) == (near(share), near(share))
        assert parts.pos_embed is not None
        assert float(parts.pos_embed) == float(parts.mlp[0]) == float(parts.attn_bias[0]) == 0.0
        assert float(parts.total) == near(2 * share)
    difference = attribute(trace, 1, 1, foil=0)
    assert float(difference.heads[0, 0]) == near(1.5)
    assert float(difference.logit) == near(3.0)


def test_the_ledger() -> None:
    loaded, trace = by_hand()
    assert check_ledger(loaded, trace, scan_heads(trace).replay).holds
