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

from app.analysis import messages, stream
from app.domain.axes import TensorSpec
from app.domain.snapshot import Snapshot
from app.errors import NotFound, OutOfRange
from app.lm.trace import Trace

MOST_AXES_LEFT = 3

Computed = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Entry:
    """One row of the table.

    `compute` takes the trace and the needed indices, and returns the rest and, where some cells cannot be seen, a mask.
    """

    spec: TensorSpec
    needs: tuple[str, ...] = ()
    compute: Callable[..., Computed] | None = None


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
    name: str, axes: str, unit: str, about: str, needs: str = "", compute: Callable[..., Computed] | None = None
) -> Entry:
    return Entry(TensorSpec(name, tuple(axes.split()), unit, about), tuple(needs.split()), compute)


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


def from_trace(trace: Trace, name: str, fixed: Mapping[str, int]) -> Answer:
    """The answer computed from a trace.

    Raises:
        NotFound: no such tensor. OutOfRange: a needed axis is not fixed, or as in `from_snapshot`.
        Unsupported: the layer has no such quantity.
    """
    entry = entry_of(name)
    needed = needed_of(entry, fixed)
    if "head" in needed:
        block = trace.block(needed["layer"])
        _check("head", needed["head"], block.n_heads)
    return computed(entry, trace, needed, fixed)


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


def computed(entry: Entry, trace: object, needed: Mapping[str, int], fixed: Mapping[str, int]) -> Answer:
    """The answer of an entry, computed from a trace of its kind and cut where more is fixed than it needs."""
    assert entry.compute is not None
    with torch.inference_mode():
        array, mask = entry.compute(trace, **needed)
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
