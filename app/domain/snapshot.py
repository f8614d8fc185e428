"""The snapshot: what is stored of an analysis, so that a shared link opens without the model."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

_META = "meta.json"
FORMAT = 1


@dataclass(frozen=True)
class Snapshot:
    """Plain data and numpy arrays of one analysis.

    `meta` is JSON: tokens, predictions, ledger, notes. `tensors` are arrays by the names of the tensor table. NaN and
    infinity survive in the arrays; in `meta` they are refused.
    """

    meta: Mapping[str, object]
    tensors: Mapping[str, np.ndarray] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The snapshot as one compressed npz file; never pickled."""
        body = json.dumps({"format": FORMAT, **self.meta}, ensure_ascii=False, allow_nan=False).encode()
        buffer = io.BytesIO()
        arrays = {name: np.asarray(array) for name, array in self.tensors.items()}
        np.savez_compressed(buffer, **{_META: np.frombuffer(body, dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
        return buffer.getvalue()

    @staticmethod
    def from_bytes(data: bytes) -> "Snapshot":
        """The inverse of `to_bytes`.

        Raises:
            ValueError: the bytes are no snapshot of a format that this version reads.
        """
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            if _META not in archive:
                raise ValueError("not a snapshot: it has no metadata")
            meta = json.loads(archive[_META].tobytes())
            if meta.pop("format", None) != FORMAT:
                raise ValueError(f"a snapshot of another format; this version reads {FORMAT}")
            return Snapshot(meta, {name: archive[name] for name in archive.files if name != _META})
