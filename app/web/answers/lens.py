"""Rows of the logit lens as plain data."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.domain.ledger import LedgerRow
from app.errors import InvalidInput
from app.lm.protocol import LoadedModel, Trace
from app.web.answers.words import Label, closes_json, word
from app.web.arrays import typed_array
from app.web.copy_as_python import array_lines

if TYPE_CHECKING:
    from app.analysis.lens import LensRows

ARRAYS = (
    "top_ids", "top_probability", "top_logit", "entropy", "target_probability", "target_logit", "target_rank", "kl",
)  # fmt: skip


def require_one(asked: dict[str, Any]) -> None:
    """Does nothing if exactly one of pos and point is given.

    Raises:
        InvalidInput: neither or both are.
    """
    if (asked["pos"] is None) == (asked["point"] is None):
        given = "both" if asked["pos"] is not None else "neither"
        raise InvalidInput(
            f"Give either pos, for one position at every point, or point, for one point at every position; {given} "
            "came.",
            given=given,
        )


def lens_answer(loaded: LoadedModel, trace: Trace, path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The answer for {pos or point, target, foil, k}.

    Raises:
        InvalidInput: neither pos nor point is given, or both. OutOfRange, UnknownToken.
    """
    from app.analysis.lens import blocks_of, joined, lens_rows, points_of

    require_one(asked)
    pos, point = asked["pos"], asked["point"]
    if pos is not None:
        rows = [(each.point, pos) for each in points_of(trace.anatomy)]  # type: ignore[attr-defined]
    else:
        rows = [(point, each) for each in range(trace.n_pos)]  # type: ignore[attr-defined]
    parts = [
        lens_rows(trace, block, asked["k"], asked["target"], asked["foil"])  # type: ignore[arg-type]
        for block in blocks_of(rows)
    ]
    more = 'print(array(answer["top_probability"]), array(answer["entropy"]))'
    return {**rows_json(loaded, trace, joined(parts), asked), "python": array_lines(path, asked, more)}


def rows_json(loaded: LoadedModel, trace: Trace, found: "LensRows", asked: dict[str, Any]) -> dict[str, Any]:
    """Rows with the points they stand at and the labels of every token they name."""
    from app.analysis.lens import points_of

    label: Label = loaded.vocabulary.label  # type: ignore[attr-defined]
    target, foil = asked["target"], asked["foil"]
    named = {*found.top_ids.flatten().tolist(), *found.targets.tolist()}
    shown = set(found.points.tolist())
    one = target is not None or len(set(found.targets.tolist())) == 1
    return {
        "points": [
            {**asdict(each), "label": each.label}
            for each in points_of(trace.anatomy)  # type: ignore[attr-defined]
            if each.point in shown
        ],
        "rows": [
            {"point": point, "pos": position}
            for point, position in zip(found.points.tolist(), found.positions.tolist(), strict=True)
        ],
        "k": found.top_ids.shape[1],
        "aim": {
            "target": word(int(found.targets[0]), label) if one else None,
            "foil": None if foil is None else word(foil, label),
            "chosen": "top" if target is None else "given",
        },
        "labels": {str(token_id): label(token_id) for token_id in sorted(named)},
        **{name: typed_array(getattr(found, name).cpu().numpy()) for name in ARRAYS},
        "target_ids": typed_array(found.targets.cpu().numpy()),
        "foil_logit": None if foil is None else typed_array(found.foil_logit.cpu().numpy()),
        "closes": closes_json(_closes(trace, found)),
    }


def block_answer(
    loaded: LoadedModel, trace: Trace, rows: Sequence[tuple[int, int]], asked: dict[str, Any]
) -> dict[str, Any]:
    """One block of the whole lens."""
    from app.analysis.lens import lens_rows

    found = lens_rows(trace, rows, asked["k"], asked["target"], asked["foil"])  # type: ignore[arg-type]
    return rows_json(loaded, trace, found, asked)


def plan(trace: Trace, asked: dict[str, Any]) -> list[list[tuple[int, int]]]:
    """The blocks of the whole lens, what was asked for first in front."""
    from app.analysis.lens import blocks_of, every_row

    between = asked["points"] == "all"
    rows = every_row(trace, between, asked["first_pos"], asked["first_point"])  # type: ignore[arg-type]
    return [list(block) for block in blocks_of(rows)]


def _closes(trace: Trace, found: "LensRows") -> list[LedgerRow]:
    from app.analysis.ledger import tolerance_of
    from app.analysis.lens import last_point_error

    error = last_point_error(trace, found)  # type: ignore[arg-type]
    if error is None:
        return []
    claim = "At the last point the lens is the model's own prediction."
    return [LedgerRow("last_point", claim, *error, tolerance_of(trace))]  # type: ignore[arg-type]
