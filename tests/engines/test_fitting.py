"""Where no input fits the sizes that a user gave, a check names sizes that do."""

from __future__ import annotations

import re

import onnx.parser
import pytest

from bridge.check import check

PRODUCT = """
<ir_version: 8, opset_import: ["" : 17]>
product (float[n, m] x, float[k] y, float[p, 6] z) => (float[n, 6] o) {
  a = Add (x, y)
  o = MatMul (a, z)
}
"""

MULTIPLE = """
<ir_version: 8, opset_import: ["" : 17]>
multiple (float[?, 4] x) => (float[?, 4, 7] o) <int64[3] s = {-1, 4, 7}> {
  o = Reshape (x, s)
}
"""


@pytest.mark.parametrize(
    ("model", "sizes", "fit"),
    [
        (PRODUCT, {"m": 3, "k": 5}, {"m": 3, "k": 3, "p": 3}),
        (PRODUCT, {"k": 5, "n": 3, "p": 4}, {"k": 5, "n": 3, "p": 5}),
        (MULTIPLE, {"x.0": 3}, {}),
    ],
    ids=["sum", "product", "multiple"],
)
def test_sizes_that_fit_are_named(model: str, sizes: dict[str, int], fit: dict[str, int]) -> None:
    """The refusal gives the reason, and sizes with which a check runs."""
    source = onnx.parser.parse_model(model)
    report = check(source, sizes=sizes, budget=20)
    assert not report.ok
    (text,) = report.failures
    assert text.startswith("no input was found that the model takes (mostly: onnxruntime: ")
    named = {k: int(n) for k, n in re.findall(r" --size (\S+)=(\d+)", text)}
    assert named.items() >= fit.items() and named.keys() >= sizes.keys(), text
    assert check(source, sizes=named, samples=1, budget=20).ok


def test_open_sizes_are_named_where_none_were_given() -> None:
    """A model that takes nothing: the refusal says what is open, and no sizes that would not do."""
    source = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        odd (float[n] x) => (float[2, h] o) <int64[2] s = {2, -1}, float[1] one = {1}> {
          a = Concat <axis = 0> (x, x, one)
          o = Reshape (a, s)
        }
        """
    )
    (text,) = check(source, budget=20).failures
    assert "give sizes that fit with --size: open are n" in text
