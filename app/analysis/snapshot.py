"""The snapshot of a trace: everything that a page needs to open, small enough to store."""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from app.analysis import stream
from app.analysis.heads import scan_heads, thumbnail_bytes, thumbnail_stride
from app.analysis.ledger import check_ledger, second_forward
from app.analysis.predictions import Predictions, predict
from app.analysis.summaries import tensor_name
from app.domain.snapshot import Snapshot
from app.lm.loading import LoadedTransformer
from app.lm.recorder import Progress
from app.lm.trace import Trace

# Above this length the norms of every head and token outweigh all else, and are computed from the trace when asked for.
STORE_PER_HEAD_UP_TO = 256
SHOWN = 5

T = TypeVar("T")


def summarize(loaded: LoadedTransformer, trace: Trace, progress: Progress) -> Snapshot:
    """The snapshot: `meta` has next, top, surprisal_bits, ledger, cost_s, thumbnail_stride and notes.

    Surprisal of the first token does not exist and is null. Tensors are those of the tensor table that are stored.
    """
    cost: dict[str, float] = {}

    def timed(stage: str, work: Callable[[], T]) -> T:
        progress(stage, 0.0)
        start = time.perf_counter()
        result = work()
        cost[stage] = round(time.perf_counter() - start, 4)
        return result

    with torch.inference_mode():
        scan = timed("patterns", lambda: scan_heads(trace, progress))
        tensors = timed("norms", lambda: _norms(trace))
        predictions = timed("predictions", lambda: predict(trace, progress))
        unrecorded = timed("second_forward", lambda: second_forward(loaded, trace))
        ledger = timed("ledger", lambda: check_ledger(loaded, trace, scan.replay, unrecorded))
    tensors["thumbnails"] = thumbnail_bytes(scan.thumbnails)
    tensors |= {tensor_name(name): values for name, values in scan.summaries.items()}
    meta: dict[str, object] = {
        "ledger": ledger.to_json(),
        "cost_s": cost,
        "thumbnail_stride": thumbnail_stride(trace.n_pos),
        "notes": list(trace.anatomy.notes),
        **_predicted(loaded, predictions),
    }
    return Snapshot(meta, tensors)


def _norms(trace: Trace) -> dict[str, np.ndarray]:
    tensors = {
        "stream_norm": stream.stream_norms(trace),
        "attn_write_norm": stream.attn_write_norms(trace),
        "mlp_write_norm": stream.mlp_write_norms(trace),
    }
    head_write_norms = stream.all_head_write_norms(trace)
    tensors[tensor_name("write_norm")] = head_write_norms.mean(-1)
    if trace.n_pos <= STORE_PER_HEAD_UP_TO:
        tensors["message_norm"] = stream.all_message_norms(trace)
        tensors["head_write_norm"] = head_write_norms
    return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}


def _predicted(loaded: LoadedTransformer, predictions: Predictions) -> dict[str, object]:
    ids = predictions.top_ids[:, :SHOWN].tolist()
    probabilities = predictions.top_probabilities[:, :SHOWN].tolist()
    logits = predictions.top_logits[:, :SHOWN].tolist()
    label = loaded.vocabulary.label
    rows = [
        [
            {"id": token_id, "label": label(token_id), "probability": probability, "logit": logit}
            for token_id, probability, logit in zip(*row, strict=True)
        ]
        for row in zip(ids, probabilities, logits, strict=True)
    ]
    surprisal = [None, *predictions.surprisal[1:].tolist()]
    return {"next": rows[-1], "top": rows, "surprisal": surprisal, "entropy": predictions.entropy.tolist()}
