"""The tensor table: everything that can be asked for by name, with its axes, and how an index into it is answered.

A tensor is answered either from the stored snapshot or, by `compute`, from a trace. `needs` names the axes that must be
fixed before anything is computed; every other axis may be fixed too. A name may be in both places: short prompts store
more than long ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from app.analysis import head_maps, messages, retention, stream
from app.analysis.summaries import PROMPT_SUMMARIES, tensor_name
from app.domain.axes import TensorSpec
from app.domain.snapshot import Snapshot
from app.errors import InvalidInput, NotFound, OutOfRange
from app.lm.trace import Trace

MOST_AXES_LEFT = 3

Computed = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Entry:
    """One row of the table.

    `compute` takes the trace and the needed indices, and returns the rest and, where some cells cannot be seen, a mask.
    One that `is_aimed` takes a target and a foil too. `not_where` names properties of the anatomy under which there is
    no such quantity.
    """

    spec: TensorSpec
    needs: tuple[str, ...] = ()
    compute: Callable[..., Computed] | None = None
    is_aimed: bool = False
    not_where: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What was asked for: the axes that are left, those that were fixed, the numbers, and the mask if there is one."""

    spec: TensorSpec
    axes: tuple[str, ...]
    fixed: Mapping[str, int]
    array: np.ndarray
    mask: np.ndarray | None = None


def _plain(compute: Callable[..., Tensor]) -> Callable[..., Computed]:
    return lambda trace, **fixed: (compute(trace, **fixed), None)


def _pattern(trace: Trace, layer: int, head: int) -> Computed:
    return trace.pattern(layer)[head], trace.seen(layer)


def _delivered(trace: Trace, layer: int, head: int) -> Computed:
    return messages.delivered_norms(trace, layer, head), trace.seen(layer)


def _entry(
    name: str, axes: str, unit: str, about: str, needs: str = "", compute: Callable[..., Computed] | None = None,
    is_aimed: bool = False, not_where: str = "",
) -> Entry:  # fmt: skip
    spec = TensorSpec(name, tuple(axes.split()), unit, about)
    return Entry(spec, tuple(needs.split()), compute, is_aimed, tuple(not_where.split()))


_HELD = "1 all of it, 0 none, below 0 its opposite"


TABLE: dict[str, Entry] = {
    entry.spec.name: entry
    for entry in (
        _entry(
            "thumbnails", "layer head row col", "255 = largest weight of the head",
            "Every head's pattern, pooled by maximum to at most 32 × 32 pixels.",
        ),
        _entry("stream_norm", "stream pos", "norm", "Norm of the residual stream.", "", _plain(stream.stream_norms)),
        _entry(
            "attn_write_norm", "layer pos", "norm", "Norm of what attention added.",
            "", _plain(stream.attn_write_norms),
        ),
        _entry(
            "mlp_write_norm", "layer pos", "norm", "Norm of what the MLP added.",
            "", _plain(stream.mlp_write_norms),
        ),
        _entry(
            "head_write_norm", "layer head pos", "norm", "Norm of each head's output at every reader.",
            "layer", _plain(messages.head_write_norms),
        ),
        _entry(
            "message_norm", "layer head key_pos", "norm", "Norm of each head's message from every source.",
            "layer", _plain(messages.message_norms),
        ),
        _entry(
            "pattern", "layer head query_pos key_pos", "probability", "Where a head looks: softmax of its scores.",
            "layer head", _pattern,
        ),
        _entry(
            "delivered_norm", "layer head query_pos key_pos", "norm", "Pattern × message norm: what arrives.",
            "layer head", _delivered,
        ),
        _entry(
            "score", "layer head query_pos key_pos", "score", "Scores before the softmax; NaN where nothing is seen.",
            "layer head", head_maps.score_map,
        ),
        _entry(
            "pattern_without_first", "layer head query_pos key_pos", "share of what the first source leaves",
            "The pattern without the first source, rows scaled up to 1: not the model's own numbers.",
            "layer head", head_maps.pattern_without_first,
        ),
        _entry(
            "attribution_map", "layer head query_pos key_pos", "logits",
            "What every delivered message adds directly to its reader's logit of the target, or of target minus foil; "
            "without a target, of the token that follows the reader.",
            "layer head", head_maps.effect_map, is_aimed=True, not_where="normalises_sum",
        ),
        _entry(
            "stream_between_norm", "layer pos", "norm", "Norm of the stream between attention and MLP.",
            "", _plain(retention.between_norms), not_where="parallel normalises_sum",
        ),
        _entry(
            "attn_write_along", "layer pos", "norm, signed", "What attention wrote, projected on the stream.",
            "", _plain(retention.attn_along),
        ),
        _entry(
            "mlp_write_along", "layer pos", "norm, signed", "What the MLP wrote, projected on the stream.",
            "", _plain(retention.mlp_along),
        ),
        _entry(
            "head_write_along", "layer head pos", "norm, signed", "What each head wrote, projected on the stream.",
            "layer", _plain(retention.head_along),
        ),
        _entry(
            "embed_retention", "stream pos", "share, signed", f"How much of the embedding the stream holds: {_HELD}.",
            "", _plain(retention.embed_retention),
        ),
        _entry(
            "attn_write_retention", "layer pos", "share, signed",
            f"How much of each attention write the last stream holds: {_HELD}.",
            "", _plain(retention.attn_retention),
        ),
        _entry(
            "mlp_write_retention", "layer pos", "share, signed",
            f"How much of each MLP write the last stream holds: {_HELD}.",
            "", _plain(retention.mlp_retention),
        ),
        _entry(
            "head_write_retention", "layer head pos", "share, signed",
            f"How much of each head's write the last stream holds: {_HELD}.",
            "layer", _plain(retention.head_retention),
        ),
        _entry(
            "attn_write_held", "layer stream pos", "share, signed",
            f"How much of one layer's attention write every stream holds: {_HELD}.",
            "layer", _plain(retention.attn_held),
        ),
        _entry(
            "mlp_write_held", "layer stream pos", "share, signed",
            f"How much of one layer's MLP write every stream holds: {_HELD}.",
            "layer", _plain(retention.mlp_held),
        ),
        _entry(
            "stream_cosine", "pos stream other_stream", "cosine", "Cosines between the streams of all layers.",
            "pos", _plain(retention.stream_cosine),
        ),
        _entry(
            "stream_step_cosine", "layer pos", "cosine", "Cosine of the stream before a layer and after it.",
            "", _plain(retention.step_cosine),
        ),
        *(_entry(tensor_name(one.name), "layer head", one.unit, one.about) for one in PROMPT_SUMMARIES),
    )
}  # fmt: skip


def entry_of(name: str, table: Mapping[str, Entry] | None = None) -> Entry:
    """The row of a table, that of transformers where none is given, with this name.

    Raises:
        NotFound: there is none; the message lists those there are.
    """
    table = TABLE if table is None else table
    entry = table.get(name)
    if entry is None:
        raise NotFound(f"There is no tensor named {name!r}; there are: {', '.join(sorted(table))}.", tensor=name)
    return entry


def from_snapshot(
    snapshot: Snapshot, name: str, fixed: Mapping[str, int], table: Mapping[str, Entry] | None = None
) -> Answer | None:
    """The answer from what is stored, or None where the snapshot does not hold this tensor.

    Raises:
        NotFound: no such tensor. OutOfRange: an index outside its axis, an axis it does not have, or too many left.
    """
    entry = entry_of(name, table)
    array = snapshot.tensors.get(name)
    return None if array is None else sliced(entry, entry.spec.axes, array, None, fixed, {})


def from_trace(
    trace: Trace, name: str, fixed: Mapping[str, int], aim: Mapping[str, int] | None = None
) -> Answer:  # fmt: skip
    """The answer computed from a trace. `aim` gives the target and the foil of a tensor that is aimed.

    Raises:
        NotFound: no such tensor. OutOfRange: a needed axis is not fixed, or as in `from_snapshot`; UnknownToken.
        Unsupported: the layer, or the model, has no such quantity.
    """
    entry = entry_of(name)
    needed = needed_of(entry, fixed)
    if "head" in needed:
        block = trace.block(needed["layer"])
        _check("head", needed["head"], block.n_heads)
    return computed(entry, trace, needed, fixed, aim)


def require_aimable(entry: Entry) -> None:
    """Does nothing for a tensor that can be measured on a target.

    Raises:
        InvalidInput: it cannot.
    """
    if not entry.is_aimed:
        raise InvalidInput(
            f"{entry.spec.name} has no target or foil to choose; leave both out.", tensor=entry.spec.name
        )


def needed_of(entry: Entry, fixed: Mapping[str, int]) -> dict[str, int]:
    """The indices that an entry needs before anything can be computed.

    Raises:
        NotFound: the tensor is not computed. OutOfRange: one of them is missing.
    """
    if entry.compute is None:
        raise NotFound(f"{entry.spec.name} is kept with the analysis and is not computed on demand.")
    missing = [axis for axis in entry.needs if axis not in fixed]
    if missing:
        raise OutOfRange(
            f"{entry.spec.name} is given for one {' and '.join(missing)} at a time; add ?{missing[0]}=…", needs=missing
        )
    return {axis: fixed[axis] for axis in entry.needs}


def computed(
    entry: Entry,
    trace: object,
    needed: Mapping[str, int],
    fixed: Mapping[str, int],
    aim: Mapping[str, int] | None = None,
) -> Answer:
    """The answer of an entry, computed from a trace of its kind and cut where more is fixed than it needs."""
    assert entry.compute is not None
    with torch.inference_mode():
        array, mask = entry.compute(trace, **needed, **(aim or {}))
    left = tuple(axis for axis in entry.spec.axes if axis not in needed)
    rest = {axis: index for axis, index in fixed.items() if axis not in needed}
    seen = None if mask is None else mask.to(torch.uint8).cpu().numpy()
    return sliced(entry, left, array.float().cpu().numpy(), seen, rest, needed)


def sliced(
    entry: Entry,
    axes: tuple[str, ...],
    array: np.ndarray,
    mask: np.ndarray | None,
    fixed: Mapping[str, int],
    already: Mapping[str, int],
) -> Answer:
    """The part of an array at the fixed indices. Raises OutOfRange as `from_snapshot`."""
    unknown = [axis for axis in fixed if axis not in axes]
    if unknown:
        raise OutOfRange(
            f"{entry.spec.name} has no axis {unknown[0]} to fix; its axes are {', '.join(entry.spec.axes)}.",
            axes=list(axes),
        )
    index: list[int | slice] = []
    for axis, size in zip(axes, array.shape, strict=True):
        if axis in fixed:
            _check(axis, fixed[axis], size)
        index.append(fixed.get(axis, slice(None)))
    left = tuple(axis for axis in axes if axis not in fixed)
    # Thumbnails are one picture for the page and small by construction.
    if len(left) > MOST_AXES_LEFT and entry.spec.name != "thumbnails":
        raise OutOfRange(
            f"{entry.spec.name} has {len(left)} axes left; fix {len(left) - MOST_AXES_LEFT} more of {', '.join(left)}."
        )
    cut = tuple(index)
    seen = None if mask is None else np.ascontiguousarray(mask[cut])
    return Answer(entry.spec, left, {**already, **fixed}, np.ascontiguousarray(array[cut]), seen)


def _check(axis: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise OutOfRange(
            f"There is no {axis} {index}; {axis} runs from 0 to {size - 1}.", axis=axis, index=index, size=size
        )
