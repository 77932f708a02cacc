"""Where no input fits the sizes that a user gave, a check names sizes that do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx.parser
import openvino
import pytest

from bridge.check import check
from tests.support.reports import whole_feeds_of

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


def image_and_text(path: Path, patch: int, positions: int, width: int = 8) -> None:
    """Writes an IR as OpenVINO's PyTorch frontend does: all sizes are open. The patches of an
    image, and one token more, are as many as the rows of a table of positions."""
    op, rng = openvino.opset13, np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    image = op.parameter(openvino.PartialShape([-1] * 4), np.float32, name="image")
    ids = op.parameter(openvino.PartialShape([-1] * 2), np.int64, name="ids")
    at = [patch, patch]
    patches = op.convolution(image, weights(width, 3, *at), at, [0, 0], [0, 0], [1, 1])
    rows = op.transpose(op.reshape(patches, np.array([0, 0, -1]), True), np.array([0, 2, 1]))
    batch = op.gather(op.shape_of(image, "i64"), np.array([0]), np.int64(0))
    shape = op.concat([batch, np.array([1]), np.array([width])], 0)
    tokens = op.concat([op.broadcast(weights(1, 1, width), shape), rows], 1)
    seen = op.reduce_mean(op.add(tokens, weights(1, positions, width)), np.array([1]), False)
    words = op.gather(weights(30, width), ids, np.int64(0))
    length = op.gather(op.shape_of(ids, "i64"), np.array([1]), np.int64(0))
    places = op.slice(weights(1, 16, width), np.array([0]), length, np.array([1]), np.array([1]))
    read = op.reduce_mean(op.add(words, places), np.array([1]), False)
    model = openvino.Model([op.matmul(read, seen, False, True)], [ids, image])
    openvino.save_model(model, path, False)


@pytest.mark.parametrize(("patch", "positions"), [(4, 50), (16, 197), (3, 13), (16, 37)])
def test_the_size_of_an_image_follows_from_its_positions(
    patch: int, positions: int, tmp_path: Path
) -> None:
    image_and_text(tmp_path / "m.xml", patch, positions)
    report = check(tmp_path / "m.xml")
    assert report.ok, str(report)
    taken = whole_feeds_of(report)
    sizes = {feed["image"].shape[2:] for feed in taken}
    assert all((h // patch) * (w // patch) == positions - 1 for h, w in sizes)
