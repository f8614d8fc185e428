"""What effects are measured on: one token's logit, or the difference of two."""

from dataclasses import dataclass
from typing import Literal

from app.analysis.indices import require_index, require_token
from app.analysis.predictions import last_logits
from app.lm.trace import Trace


@dataclass(frozen=True)
class Aim:
    """The token whose logit is explained and the one it is compared with. `chosen` is "top" where nobody gave one."""

    target: int
    foil: int | None
    chosen: Literal["given", "top"]


def aim_at(trace: Trace, position: int, target: int | None = None, foil: int | None = None) -> Aim:
    """The aim at a position: the target that was given, or the model's top prediction there.

    Raises:
        OutOfRange: there is no such position. UnknownToken: the model predicts no such token.
    """
    require_index("pos", position, trace.n_pos)
    for token_id in (target, foil):
        if token_id is not None:
            require_token(trace, token_id)
    if target is not None:
        return Aim(target, foil, "given")
    return Aim(int(last_logits(trace, position, position + 1)[0].argmax()), foil, "top")
