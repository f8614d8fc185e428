"""The ledger: what the program claims adds up, how far off it is, and how far off it may be."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class LedgerRow:
    """One claim of equality, checked.

    `worst_abs` is the largest |left − right|; `worst_rel` is that over the largest |right|, so that it is a statement
    about the tensor and not about its entries near zero. The row holds when `worst_rel <= tolerance`.
    NaN never holds.
    """

    name: str
    claim: str
    worst_abs: float
    worst_rel: float
    tolerance: float
    where: str = ""
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the claim is true within its tolerance."""
        return self.worst_rel <= self.tolerance


@dataclass(frozen=True)
class Ledger:
    """All rows of one analysis."""

    rows: tuple[LedgerRow, ...]

    @property
    def holds(self) -> bool:
        """Whether every row holds; an empty ledger proves nothing and does not hold."""
        return bool(self.rows) and all(row.holds for row in self.rows)

    def to_json(self) -> list[dict[str, object]]:
        """The rows as plain data, each with its verdict."""
        return [{**asdict(row), "holds": row.holds} for row in self.rows]

    @staticmethod
    def from_json(rows: Iterable[dict[str, object]]) -> "Ledger":
        """The inverse of `to_json`."""
        fields = LedgerRow.__dataclass_fields__
        return Ledger(tuple(LedgerRow(**{k: v for k, v in row.items() if k in fields}) for row in rows))  # type: ignore[arg-type]
