"""Comparing what should be equal: the worst error over many vectors, seen a block at a time."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from app.domain.ledger import LedgerRow


@dataclass
class Worst:
    """The worst difference between two families of vectors.

    The relative error of a vector is max |left − right| over max |right| *of the same vector*, so that a token with a
    huge norm (the first one, usually) does not excuse errors in the others. NaN anywhere makes the result NaN.
    """

    absolute: float = 0.0
    relative: float = 0.0
    where: str = ""
    n_vectors: int = 0

    def compare(
        self,
        left: Float[Tensor, "vector feature"],
        right: Float[Tensor, "vector feature"],
        name: Callable[[int], str] = str,
    ) -> None:
        """Takes in vectors that should be equal; `name` says where vector i stands."""
        difference = (left - right).abs().amax(-1)
        # A vector of exact zeros has no scale; the smallest normal number keeps 0/0 out and any error in.
        relative = difference / right.abs().amax(-1).clamp_min(1e-30)
        self.n_vectors += left.shape[0]
        largest = float(difference.max())
        if _exceeds(largest, self.absolute):
            self.absolute = largest
        index = int(relative.argmax())
        largest = float(relative[index])
        if _exceeds(largest, self.relative):
            self.relative, self.where = largest, name(index)

    def row(self, name: str, claim: str, tolerance: float, note: str = "") -> LedgerRow:
        """The ledger row; comparing nothing proves nothing, so it is then NaN and does not hold."""
        relative = self.relative if self.n_vectors else float("nan")
        return LedgerRow(name, claim, self.absolute, relative, tolerance, self.where, note)


def _exceeds(new: float, old: float) -> bool:
    """Whether a value is the larger of two, where NaN is larger than every number and stays."""
    return new > old or (math.isnan(new) and not math.isnan(old))


def closing_sum(
    name: str, claim: str, parts: Float[Tensor, " part"], whole: Float[Tensor, ""], tolerance: float, note: str = ""
) -> LedgerRow:
    """The row for "these numbers add up to that one".

    Parts of opposite signs can nearly cancel; the error is then relative to the largest part, not to what is left.
    """
    absolute = float((parts.sum() - whole).abs())
    scale = max(float(parts.abs().max()) if parts.numel() else 0.0, float(whole.abs()), 1e-30)
    return LedgerRow(name, claim, absolute, absolute / scale, tolerance, "", note)
