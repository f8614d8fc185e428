"""Typed arrays and exact JSON."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.web.arrays import ExactJSON, exact, typed_array


def decode(array: dict[str, str]) -> np.ndarray:
    shape = [int(size) for size in array["shape"].split(",")] if array["shape"] else []
    return np.frombuffer(base64.b64decode(array["bdata"]), dtype=f"<{array['dtype']}").reshape(shape)


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int32, np.uint8, np.dtype(">f4")]), hnp.array_shapes(max_dims=3)
    )
)
def test_an_array_survives_bit_for_bit(array: np.ndarray) -> None:
    back = decode(typed_array(array))
    assert back.shape == array.shape
    assert back.tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


@pytest.mark.parametrize(
    ("dtype", "sent"), [(np.float16, "f4"), (np.int64, "i4"), (np.uint64, "u4"), (np.bool_, "u1"), (np.int16, "i2")]
)
def test_a_type_that_plotly_does_not_read_is_widened_or_narrowed_exactly(dtype: type, sent: str) -> None:
    array = np.array([[0, 1], [1, 0]], dtype=dtype)
    body = typed_array(array)
    assert body["dtype"] == sent
    np.testing.assert_array_equal(decode(body), array)


def test_a_large_integer_is_refused_and_never_wrapped() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        typed_array(np.array([2**40]))


def test_a_type_without_a_typed_array_is_refused() -> None:
    with pytest.raises(ValueError, match="no typed array"):
        typed_array(np.array([1j]))


def test_an_array_that_is_not_contiguous_is_sent_row_by_row() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3).T
    np.testing.assert_array_equal(decode(typed_array(array)), array)


def test_a_scalar_that_is_not_finite_becomes_text_and_never_null() -> None:
    body = ExactJSON({"a": [float("nan"), float("inf"), -float("inf"), np.float32("nan")], "b": None}).body
    assert json.loads(body) == {"a": ["NaN", "Infinity", "-Infinity", "NaN"], "b": None}


def test_plain_data_is_left_alone() -> None:
    value = {"a": [1, 2.5, "x", True, None], "b": {"c": [[]]}}
    assert exact(value) == value


def test_a_lone_surrogate_is_escaped_in_json() -> None:
    assert json.loads(ExactJSON({"a": "\udcf0é"}).body) == {"a": "\udcf0é"}
