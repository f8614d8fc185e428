"""The axes of every tensor, in one place.

| axis       | runs over                                                              |
|------------|------------------------------------------------------------------------|
| layer      | blocks, 0 at the bottom                                                |
| stream     | points of the residual stream: 0 is the embedding, l + 1 follows layer l |
| other_stream | the same points, where two of them are compared                      |
| head       | query heads of one layer                                               |
| kv_head    | key/value heads of one layer, each shared by n_heads / n_kv_heads heads |
| query_pos  | readers: positions that attend                                         |
| key_pos    | sources: positions that are attended to                                |
| pos        | positions, where reader and source are the same                        |
| component  | writes to the stream in their one order, see `components`              |
| d_model, d_head, vocab | features of the stream, of a head, and token ids           |
| k          | rank in a list of the best                                             |
| row, col   | pixels of a thumbnail (query and key side)                             |
| unit       | cells of an LSTM layer                                                 |
| step       | characters or words that an LSTM has read, padding included            |

query_pos comes before key_pos. There is no batch axis anywhere.
"""

from dataclasses import dataclass

AXES = (
    "layer", "stream", "other_stream", "head", "kv_head", "query_pos", "key_pos", "pos", "component",
    "d_model", "d_head", "vocab", "k", "row", "col", "unit", "step",
)  # fmt: skip


@dataclass(frozen=True)
class TensorSpec:
    """What one named tensor is: its axes in order, its unit and a sentence about it."""

    name: str
    axes: tuple[str, ...]
    unit: str
    about: str

    def __post_init__(self) -> None:
        unknown = [axis for axis in self.axes if axis not in AXES]
        if unknown:
            raise ValueError(f"{self.name}: unknown axes {unknown}")
