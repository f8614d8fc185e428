"""Indices that came from outside, checked before anything is computed with them."""

from app.errors import OutOfRange, UnknownToken
from app.lm.anatomy import Block
from app.lm.trace import Trace


def require_index(axis: str, index: int, size: int) -> None:
    """Does nothing for an index that its axis has.

    Raises:
        OutOfRange: it has not; the message says how far the axis runs.
    """
    if not 0 <= index < size:
        raise OutOfRange(
            f"There is no {axis} {index}; {axis} runs from 0 to {size - 1}.", axis=axis, index=index, size=size
        )


def require_head(trace: Trace, layer: int, head: int) -> Block:
    """The block of a head.

    Raises:
        OutOfRange: there is no such layer or head. Unsupported: the layer has no softmax attention.
    """
    block = trace.block(layer)
    require_index("head", head, block.n_heads)
    return block


def require_token(trace: Trace, token_id: int) -> None:
    """Does nothing for a token that the model can predict.

    Raises:
        UnknownToken: its unembedding has no such column.
    """
    size = trace.anatomy.vocab_size
    if not 0 <= token_id < size:
        raise UnknownToken(
            f"The model predicts tokens 0 to {size - 1}; {token_id} is not one of them.", token_id=token_id, size=size
        )
