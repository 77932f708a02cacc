"""A check with inputs of the user's own: read, held to the model, compared, saved and run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import bridge
from bridge.check import check
from bridge.check.inputs import Recipe, make_inputs
from bridge.check.inputs.own import places_of, read_inputs, save_feeds
from bridge.errors import UsageError
from tests.support.command_line import bridge as run
from tests.support.reports import feeds_of

GATE = """
<ir_version: 9, opset_import: ["" : 18]>
gate (float[N,4] x, int64 mode) => (float[N,4] y, float[N,4] z) {
  seven = Constant<value = int64 {7}>()
  is_seven = Equal(mode, seven)
  z = Neg(x)
  y = If (is_seven) <
    then_branch = a () => (float[N,4] t) { t = Exp(x) },
    else_branch = d () => (float[N,4] u) { u = Add(x, x) }>
}
"""
KINDS = """
<ir_version: 9, opset_import: ["" : 18]>
kinds (bfloat16[2] b, string[2] s, seq(float[N]) q, optional(float[2]) o, float[2] default)
  => (bfloat16[2] y) <float[2] default = {1, 2}> { y = Identity(b) }
"""
X = np.ones((2, 4), np.float32)
SEVEN = {"x": X, "mode": np.array(7)}


def gate(folder: Path, name: str = "m.onnx", **changes: str) -> Path:
    text = GATE
    for old, new in changes.items():
        text = text.replace(old, new)
    onnx.save(onnx.parser.parse_model(text), folder / name)
    return folder / name


def test_own_inputs_come_first_and_count(tmp_path: Path) -> None:
    path = gate(tmp_path)
    report = check(path, inputs=[SEVEN, {"x": X * 1e9, "mode": 3}], samples=2)
    assert report.ok and report.branches.reached == {(0, 1): 0, (0, 0): 1}
    assert len(feeds_of(report)) >= 4 and np.array_equal(feeds_of(report)[0]["x"], X)
    alone = check(path, inputs=SEVEN, samples=0)
    assert alone.ok and len(feeds_of(alone)) == 1
    assert (
        alone.branches.state((0, 0)).state == "forced"
        and alone.branches.state((0, 1)).state == "reached"
    )


def test_a_failing_input_that_was_saved_reproduces(tmp_path: Path) -> None:
    path, wrong = gate(tmp_path), gate(tmp_path, "w.onnx", Exp="Abs")
    report = check(path, wrong, save_inputs=tmp_path / "ran")
    assert report.different
    bad = [file for file in report.saved if file.stem.endswith("-differs")]
    assert bad and len(report.saved) == len(feeds_of(report))
    pairs = zip(feeds_of(report), report.saved, strict=True)
    assert all((feed["mode"] == 7) == (file in bad) for feed, file in pairs)
    (first, *_) = report.verdict.results
    again = check(path, wrong, inputs=report.saved[first.case], samples=0)
    assert again.verdict.results[0].difference == first.difference
    assert f"with input 0 ({report.saved[first.case]})" in again.summary()
    with pytest.raises(UsageError, match="holds inputs of another check"):
        check(path, save_inputs=tmp_path / "ran")


def test_data_sets_of_the_backend_tests(tmp_path: Path) -> None:
    path = gate(tmp_path)
    for number, error in enumerate((0.0, 1.0)):
        folder = tmp_path / f"test_data_set_{number}"
        folder.mkdir()
        arrays = {"input_0": (X, ""), "input_1": (np.array(7), "mode")}
        arrays |= {"output_0": (np.exp(X) + error, "y"), "output_1": (-X, "z")}
        for name, (array, known) in arrays.items():
            message = numpy_helper.from_array(array, known)
            (folder / f"{name}.pb").write_bytes(message.SerializeToString())
    right = check(path, inputs=tmp_path / "test_data_set_0", samples=1)
    assert right.ok and {result.output for result in right.verdict.results} == {"y", "z"}
    both = check(path, inputs=tmp_path, samples=1)
    (wrong,) = [result for result in both.verdict.results if not result.ok]
    assert wrong.case == 1 and wrong.label.endswith("held to the outputs that were given")


def test_tolerances_of_single_outputs(tmp_path: Path) -> None:
    path, other = gate(tmp_path), gate(tmp_path, "w.onnx", Neg="Identity")
    options: dict[str, Any] = {"inputs": SEVEN, "samples": 0}
    assert check(path, other, **options).different
    report = check(path, other, rtol={"z": 3.0, "*": 1e-6}, **options)
    assert report.ok and report.tolerances.rtol == 1e-6
    assert report.tolerances.by_output == {"z": (3.0, 1e-5)}
    assert "(rtol 1e-06, atol 1e-05; 'z': rtol 3, atol 1e-05)" in report.summary()


def test_ranges_hold_for_all_that_is_drawn(tmp_path: Path) -> None:
    report = check(gate(tmp_path), ranges={"x": (0.25, 0.5), "mode": (5.5, 7)}, samples=3)
    assert report.ok and len(report.branches.reached) == 2
    for feed in feeds_of(report):
        assert np.all((feed["x"] >= 0.25) & (feed["x"] <= 0.5)) and feed["mode"] in (6, 7)
    model = bridge.load(gate(tmp_path))
    large = make_inputs(model, Recipe(fills={"x": 1e9, "mode": -1}, ranges={"x": (-2, 3)}))
    assert np.all(large["x"] == 3) and large["mode"] == -1


def test_all_kinds_of_inputs_are_saved_and_read(tmp_path: Path) -> None:
    model = bridge.load(onnx.parser.parse_model(KINDS))
    feed: dict[str, Any] = {
        "b": np.array([1, 2], ml_dtypes.bfloat16),
        "s": np.array(["ä", ""], object),
        "q": [np.ones(k, np.float32) for k in range(12)],
        "o": None,
    }
    (file,) = save_feeds(tmp_path, [feed], {})
    for place in (file, feed):
        (found,) = read_inputs(places_of(place), model, {})
        np.testing.assert_equal(dict(found.inputs), feed)
        assert found.inputs["b"].dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"inputs": {"x": X}}, 'given input 0: has no value for the input "mode"'),
        ({"inputs": {**SEVEN, "Mode": 1}}, 'no input "Mode"; did you mean "mode"'),
        ({"inputs": {**SEVEN, "x": X.astype("float64")}}, '"x" is float64, and .* float32'),
        ({"inputs": {**SEVEN, "x": X[0]}}, "2 dimensions, not 1"),
        ({"inputs": {**SEVEN, "x": X[:, :3]}}, r"axis 1 is 3, not 4"),
        ({"inputs": {"x": "a", "mode": 1}}, '"x" is <U1'),
        ({"inputs": "none.npz"}, "none.npz: there is no such file"),
        ({"inputs": __file__}, "holds no inputs"),
        ({"inputs": {**SEVEN, "mode": 1}, "values": {"mode": 2}}, "is fixed to another value"),
        ({"ranges": {"X": (0, 1)}}, 'no input "X"; did you mean "x"'),
        ({"ranges": {"mode": (0.2, 0.7)}}, 'the range of "mode" has no number of i64 in it'),
        ({"rtol": {"Y": 1}}, 'no output "Y"; did you mean "y"'),
        ({"atol": {"y": -1}}, "atol is -1"),
        ({"samples": 0}, "`samples` is 0"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        check(gate(tmp_path), **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--range", "x=1"], "is not NAME=LOW..HIGH"),
        (["--range", "x=0..inf"], "is not NAME=LOW..HIGH"),
        (["--rtol", "y=a"], "is no number"),
        (["--inputs", "a.npz", "--jobs", "2"], "are for one model"),
    ],
)
def test_options_of_the_command(options: list[str], says: str, tmp_path: Path) -> None:
    result = run("check", gate(tmp_path), *options)
    assert result.code == 2 and says in result.err


def test_the_command(tmp_path: Path) -> None:
    path = gate(tmp_path)
    np.savez(tmp_path / "a.npz", **SEVEN)
    options = ["--inputs", tmp_path / "a.npz", "--range", "x=0..1", "--rtol", "y=1e-2"]
    result = run("check", path, "--samples", "1", *options, "--save-inputs", tmp_path / "ran")
    assert result.code == 0, result.err
    assert len(list((tmp_path / "ran").iterdir())) >= 2


def of_pictures(shape: list[int | str]) -> onnx.ModelProto:
    x, y = (onnx.helper.make_tensor_value_info(name, 1, shape) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])
    opsets = [onnx.helper.make_opsetid("", 18)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)


def test_an_array_alone(tmp_path: Path) -> None:
    """It is for the only input; one of several needs its name."""
    np.save(tmp_path / "a.npy", np.ones((1, 3, 2, 2), np.float32))
    model = of_pictures(["n", 3, "h", "w"])
    report = check(model, inputs=tmp_path / "a.npy", samples=0)
    assert report.ok and feeds_of(report)[0]["x"].shape == (1, 3, 2, 2)
    assert check(model, inputs=tmp_path, samples=0).ok  # a folder of such files
    with pytest.raises(UsageError, match="is one array, and the model takes x, mode; give"):
        check(onnx.parser.parse_model(GATE), inputs=tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("shape", "fed"),
    [
        (["n", 3, "h", "w"], (1, 3, 3, 5)),
        ([1, 3, 8, 6], (1, 3, 8, 6)),
        (["n", "h", "w", 3], (1, 3, 5, 3)),
        (["h", "w", 1], (3, 5, 1)),
        ([4, "h", "w"], (4, 3, 5)),
    ],
)
def test_a_picture(shape: list[int | str], fed: tuple[int, ...], tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (5, 3), (255, 10, 20)).save(tmp_path / "p.png")
    report = check(of_pictures(shape), inputs=tmp_path / "p.png", samples=0)
    found = feeds_of(report)[0]["x"]
    assert report.ok and found.shape == fed and found.dtype == np.float32
    assert fed[-1] == 1 or {255.0, 10.0, 20.0} <= set(np.unique(found))


def test_what_is_no_picture(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    (tmp_path / "p.png").write_bytes(b"no picture")
    with pytest.raises(UsageError, match="is no picture that can be read"):
        check(of_pictures([1, 3, 8, 8]), inputs=tmp_path / "p.png")
    with pytest.raises(UsageError, match="takes no picture; give"):
        check(of_pictures([1, 7]), inputs=tmp_path / "p.png")


ROWS = """<ir_version: 9, opset_import: ["" : 18]>
rows (int64[n] at, float[4,2] data) => (float[n,2] y) { y = Gather (data, at) }"""
BAD = ROWS.replace("Gather (data, at)", "Gather (data, far)").replace(
    "{ y", "{ nine = Constant <value = int64 {9}> () far = Add (at, nine) y"
)


def test_a_range_beyond_the_data(tmp_path: Path) -> None:
    """OpenVINO reads something for such an index, and onnxruntime refuses it."""
    for name, text in (("m", ROWS), ("far", BAD)):
        bridge.convert(onnx.parser.parse_model(text), tmp_path / f"{name}.xml")
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")
    report = check(tmp_path / "m.xml", ranges={"at": (0, 100)})
    first = report.summary().splitlines()[0]
    assert report.ok and "an index beyond the data, outside what the model takes" in first
    # What the file itself leads beyond the data is a failure.
    report = check(tmp_path / "m.xml", tmp_path / "far.onnx", ranges={"at": (0, 3)})
    assert not report.ok and "out of data bounds" in str(report), str(report)
