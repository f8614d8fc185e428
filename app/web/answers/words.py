"""The small values that the answers of the lenses share: words, effects, aims, closings, as plain data."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.domain.ledger import LedgerRow

if TYPE_CHECKING:
    from app.analysis.aim import Aim
    from app.analysis.vocabulary import Best

Label = Callable[[int], str]


def word(token_id: int, label: Label) -> dict[str, object]:
    """A token of the vocabulary."""
    return {"id": token_id, "label": label(token_id)}


def aim_json(aim: "Aim", label: Label) -> dict[str, object]:
    """What effects are measured on."""
    foil = None if aim.foil is None else word(aim.foil, label)
    return {"target": word(aim.target, label), "foil": foil, "chosen": aim.chosen}


def effects_json(ids: list[int], values: list[float], label: Label) -> list[dict[str, object]]:
    """Tokens with their numbers, in the order given."""
    pairs = zip(ids, values, strict=True)
    return [{"id": token_id, "label": label(token_id), "value": value} for token_id, value in pairs]


def best_json(best: "Best | None", high: str, low: str, label: Label) -> dict[str, Any]:
    """Both ends of a reading under the two names; empty where there is no reading."""
    if best is None:
        return {high: [], low: []}
    return {
        high: effects_json(best.high_ids.tolist(), best.high.tolist(), label),
        low: effects_json(best.low_ids.tolist(), best.low.tolist(), label),
    }


def closes_json(rows: Iterable[LedgerRow]) -> list[dict[str, object]]:
    """The sums that an answer rests on."""
    return [{**asdict(row), "holds": row.holds} for row in rows]
