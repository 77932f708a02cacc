"""TopK in forms that OpenVINO's stable TopK would compute slowly: unstable ones give ONNX's order
of equal elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import bridge
from tests.support.running import OnnxRuntime, OpenVino

INPUTS = ((1, 1), (50, 7), (50, 50), (500, 90))
"""The number of elements, and how many of them TopK returns."""
LONG = 60_000
"""More elements than one unstable TopK can sort."""


def model_of(shape: str, k: str, element: str, **attributes: int) -> onnx.ModelProto:
    given = ", ".join(f"{name} = {value}" for name, value in attributes.items())
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g ({element}[{shape}] x, int64[1] count) => ({element}[{shape.replace("n", "m")}] values,
        int64[{shape.replace("n", "m")}] places) {{
            few = Constant <value_ints = [3]> ()
            some = Constant <value_ints = [40]> ()
            all = Shape <start = {attributes["axis"]}, end = {attributes["axis"] + 1}> (x)
            values, places = TopK <{given}> (x, {k})
        }}""")


def drawn(shape: list[int], element: str) -> np.ndarray:
    """Numbers with many equal ones."""
    x = np.random.default_rng(0).integers(-3, 3, shape)
    if element == "int64":
        return x
    flat = x.reshape(-1).astype(np.float32)
    flat[::17], flat[5::19] = np.inf, -np.inf
    return flat.reshape(shape)


def comes_back(model: onnx.ModelProto, folder: Path) -> None:
    """Converts a model to `a.xml` and back, twice."""
    bridge.convert(model, folder / "a.xml")
    bridge.convert(folder / "a.xml", folder / "b.onnx")
    assert [node.op_type for node in onnx.load(folder / "b.onnx").graph.node].count("TopK") == 1
    bridge.convert(folder / "b.onnx", folder / "b.xml")
    bridge.convert(folder / "b.xml", folder / "c.onnx")
    assert (folder / "c.onnx").read_bytes() == (folder / "b.onnx").read_bytes()


def same(model: onnx.ModelProto, ir: Path, x: np.ndarray, count: int) -> None:
    expected = OnnxRuntime(model).run({"x": x, "count": np.array([count])})
    actual = OpenVino(ir).run([x, np.array([count])])
    for one, other in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("element", ["float", "int64"])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axis"), [("n", 0), ("n", -1), ("1, n, 1", -2), ("3, n", 1), ("n, 2", 0)]
)
def test_equal_elements_keep_their_order(
    shape: str, axis: int, largest: int, element: str, tmp_path: Path
) -> None:
    model = model_of(shape, "count", element, axis=axis, largest=largest)
    comes_back(model, tmp_path)
    for size, count in INPUTS:
        x = drawn([size if dim == "n" else int(dim) for dim in shape.split(", ")], element)
        same(model, tmp_path / "a.xml", x, count)


@pytest.mark.parametrize(
    ("shape", "axis", "k"),
    [
        ("400", 0, "some"), ("400", 0, "all"), ("400", 0, "count"), ("2, 400", 1, "some"),
        ("2, 400, 3", -2, "some"), ("400, 3", 0, "all"), ("400, 2", -2, "count"),
        ("n", 0, "some"), ("2, n", 1, "some"), ("n", 0, "all"), ("2, n, 2", 1, "all"),
    ],
)  # fmt: skip
def test_equal_elements_of_known_sizes(shape: str, axis: int, k: str, tmp_path: Path) -> None:
    model = model_of(shape, k, "float", axis=axis)
    comes_back(model, tmp_path)
    sizes = [400 if dim == "n" else int(dim) for dim in shape.split(", ")]
    same(model, tmp_path / "a.xml", drawn(sizes, "float"), 30)


@pytest.mark.parametrize(("shape", "k"), [(f"{LONG}", "all"), (f"{LONG}", "count"), ("n", "all")])
def test_many_elements(shape: str, k: str, tmp_path: Path) -> None:
    """The stable TopK would take minutes. It is left out if the elements are known to be few
    enough."""
    model = model_of(shape, k, "float", axis=0)
    comes_back(model, tmp_path)
    x = np.random.default_rng(0).integers(0, LONG, LONG if shape != "n" else 4000)
    same(model, tmp_path / "a.xml", x.astype(np.float32), 55_000)
    stable = (tmp_path / "a.xml").read_text().count('stable="true"')
    assert stable == (shape == "n")


def test_more_than_are_put_in_order_at_once(tmp_path: Path) -> None:
    """With an open number of elements, the stable TopK takes over here."""
    model = model_of("n", "count", "float", axis=0)
    bridge.convert(model, tmp_path / "a.xml")
    same(model, tmp_path / "a.xml", drawn([50_000], "float"), 46_400)


@pytest.mark.parametrize("shape", ["n", "300"])
def test_not_a_number_is_some_element(shape: str, tmp_path: Path) -> None:
    bridge.convert(model_of(shape, "count", "float", axis=0), tmp_path / "a.xml")
    engine = OpenVino(tmp_path / "a.xml")
    for holes in ([0], [299], range(0, 300, 7), range(290, 300), range(300)):
        x = np.random.default_rng(0).normal(size=300).astype(np.float32)
        x[holes] = np.nan
        for count in (1, 10, 200, 300):
            values, places = engine.run([x, np.array([count])])
            assert len(set(places.tolist())) == count
            np.testing.assert_array_equal(values, x[places])


@pytest.mark.parametrize(("shape", "k"), [("n", "few"), ("100", "some"), ("80", "all")])
def test_the_stable_one_is_quick_enough(shape: str, k: str, tmp_path: Path) -> None:
    bridge.convert(model_of(shape, k, "float", axis=0), tmp_path / "a.xml")
    assert (tmp_path / "a.xml").read_text().count('type="TopK"') == 1
