"""Numbers on the way out: arrays in Plotly's typed form, JSON that never turns NaN into null.

Arrays keep NaN and infinity bit for bit. JSON has no such numbers, so a scalar that is not finite becomes the text
"NaN", "Infinity" or "-Infinity", never null and never zero.
"""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from starlette.responses import JSONResponse

# plotly.js reads these; it has no half precision and no 64-bit integers.
_PLOTLY_TYPES = {"f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4"}
_CAST: dict[str, np.dtype[Any]] = {
    "f2": np.dtype("<f4"),
    "b1": np.dtype("u1"),
    "i8": np.dtype("<i4"),
    "u8": np.dtype("<u4"),
}


def typed_array(array: np.ndarray) -> dict[str, str]:
    """An array as {"dtype", "shape", "bdata"}: little-endian, row by row, base64.

    Half precision is widened to f4, booleans become u1, 64-bit integers become i4 or u4.

    Raises:
        ValueError: a number type that plotly.js does not read, or an integer that does not fit in 32 bits.
    """
    code = f"{array.dtype.kind}{array.dtype.itemsize}"
    target: np.dtype[Any] = _CAST.get(code, array.dtype.newbyteorder("<"))
    name = f"{target.kind}{target.itemsize}"
    if name not in _PLOTLY_TYPES:
        raise ValueError(f"no typed array for {array.dtype}")
    if code in ("i8", "u8") and array.size:
        bounds = np.iinfo(name)
        if array.min() < bounds.min or array.max() > bounds.max:
            raise ValueError(f"integers from {array.min()} to {array.max()} do not fit in {name}")
    data = np.ascontiguousarray(array, dtype=target).tobytes()
    return {
        "dtype": name,
        "shape": ",".join(str(size) for size in array.shape),
        "bdata": base64.b64encode(data).decode("ascii"),
    }


def exact(value: object) -> Any:
    """Plain data with every number that JSON cannot carry spelt out as text."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [exact(item) for item in value]
    if isinstance(value, np.generic):
        return exact(value.item())
    return value


class ExactJSON(JSONResponse):
    """A JSON response of plain data."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """The bytes; lone surrogates, which UTF-8 cannot carry, are escaped."""
        text = json.dumps(exact(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        try:
            return text.encode()
        except UnicodeEncodeError:
            return json.dumps(exact(content), allow_nan=False, separators=(",", ":")).encode()
