"""The report of one prompt: every tensor by the name that files use, for whole models at once.

    token_ids [pos], tokens [pos]
    pattern [layer, head, query_pos, key_pos]
    message_norm [layer, head, key_pos]         head_write_norm [layer, head, pos]
    attn_write_norm, mlp_write_norm [layer, pos]   stream_norm [stream, pos], stream = layer + 1
    logits_last [vocab]
    ledger, JSON as text

Numbers are float32. A head that a layer does not have is NaN.
"""

import json
from collections.abc import Callable, Mapping

import numpy as np
import torch

from app.analysis import stream
from app.analysis.heads import scan_heads
from app.analysis.ledger import check_ledger
from app.analysis.predictions import last_logits
from app.errors import NotFound, TooCostly
from app.lm.loading import LoadedTransformer
from app.lm.trace import Trace

# What is larger is written only if it is named.
LARGEST_UNNAMED_BYTES = 2 * 10**9

Maker = Callable[[LoadedTransformer, Trace], np.ndarray]


def report_names() -> tuple[str, ...]:
    """The names that a report can hold."""
    return tuple(_MAKERS)


def full_report(loaded: LoadedTransformer, trace: Trace, names: tuple[str, ...] = ()) -> Mapping[str, np.ndarray]:
    """The tensors with these names, or all of them where none is named.

    Raises:
        NotFound: a name is not one of `report_names`.
        TooCostly: none was named, and the pattern needs more than 2 GB.
    """
    unknown = [name for name in names if name not in _MAKERS]
    if unknown:
        raise NotFound(f"There is no tensor {unknown[0]!r}; there are: {', '.join(_MAKERS)}.", tensor=unknown[0])
    n_bytes = pattern_bytes(trace)
    if not names and n_bytes > LARGEST_UNNAMED_BYTES:
        others = ",".join(name for name in _MAKERS if name != "pattern")
        raise TooCostly(
            f"The pattern of {trace.n_pos:,} tokens needs {n_bytes / 1e9:.1f} GB, more than 2 GB. Name it if you want "
            f"it (--tensors pattern), or leave it out (--tensors {others}).",
            bytes=n_bytes,
            limit=LARGEST_UNNAMED_BYTES,
        )
    with torch.inference_mode():
        return {name: _MAKERS[name](loaded, trace) for name in names or _MAKERS}


def pattern_bytes(trace: Trace) -> int:
    """Memory of the pattern of every head, in bytes."""
    return 4 * trace.anatomy.n_layers * _n_heads(trace) * trace.n_pos**2


def _n_heads(trace: Trace) -> int:
    return max(block.n_heads for block in trace.anatomy.blocks)


def _pattern(trace: Trace) -> np.ndarray:
    shape = (trace.anatomy.n_layers, _n_heads(trace), trace.n_pos, trace.n_pos)
    whole = np.full(shape, np.nan, dtype=np.float32)
    for layer in trace.attention_layers:
        n_heads = trace.anatomy.blocks[layer].n_heads
        whole[layer, :n_heads] = 0
        for rows in trace.pattern_blocks(layer):
            whole[layer, :n_heads, rows.start : rows.end, : rows.end] = rows.pattern.float().cpu().numpy()
    return whole


def _ledger(loaded: LoadedTransformer, trace: Trace) -> np.ndarray:
    return np.array(json.dumps(check_ledger(loaded, trace, scan_heads(trace).replay).to_json(), ensure_ascii=False))


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.float().cpu().numpy()


_MAKERS: Mapping[str, Maker] = {
    "token_ids": lambda loaded, trace: np.array(trace.token_ids, dtype=np.int64),
    "tokens": lambda loaded, trace: np.array([token.text for token in loaded.tokens_of(trace.token_ids)]),
    "pattern": lambda loaded, trace: _pattern(trace),
    "message_norm": lambda loaded, trace: _numpy(stream.all_message_norms(trace)),
    "head_write_norm": lambda loaded, trace: _numpy(stream.all_head_write_norms(trace)),
    "attn_write_norm": lambda loaded, trace: _numpy(stream.attn_write_norms(trace)),
    "mlp_write_norm": lambda loaded, trace: _numpy(stream.mlp_write_norms(trace)),
    "stream_norm": lambda loaded, trace: _numpy(stream.stream_norms(trace)),
    "logits_last": lambda loaded, trace: _numpy(last_logits(trace, trace.n_pos - 1, trace.n_pos)[0]),
    "ledger": _ledger,
}
