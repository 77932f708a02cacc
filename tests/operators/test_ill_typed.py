"""Nodes whose inputs have types that do not go together are refused towards both formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import onnx
import onnx.parser
import onnxruntime
import pytest

import bridge
from bridge.operators.type_constraints import type_signature
from tests.operators.by_schema.programs import ROWS, case_of, entries


def tied(name: str, given: Sequence[str] | None = None) -> list[int]:
    """The inputs whose type another input of the standard's operator fixes, of those that are
    `given` a name."""
    domain, _, op = name.rpartition(".")
    signature = type_signature(op, 1 << 30, domain)
    if signature is None or signature.mixed or signature.inputs[0].startswith("seq"):
        return []
    inputs = signature.inputs + signature.inputs[-1:] * signature.variadic_inputs
    there = [v for i, v in enumerate(inputs) if given is None or "".join(given[i : i + 1])]
    free = [v for v in inputs if len(signature.allowed[v]) > 1]
    return [i for i, v in enumerate(inputs) if there.count(v) > 1 and v in free]


STANDARD = [name for name in ROWS if not name.startswith(("com.microsoft", "IR."))]
TIED = [name for name in STANDARD if tied(name)]


@cache
def ill_typed(name: str) -> tuple[onnx.ModelProto, ...]:
    """Models of one operator in which one of the tied inputs has another type; onnxruntime says of
    each that its types are wrong."""
    return tuple(model for model in _changed(name) if "Type Error" in _fault(model))


def _changed(name: str) -> Iterator[onnx.ModelProto]:
    seen = set[int]()
    for entry in entries(1, [name]):
        if dict(entry.levels)["place"] != "top":
            continue
        try:
            model = case_of(entry).model
        except OverflowError:  # a number below 0 of an unsigned type
            continue
        taken = model.graph.node[0].input
        for place in tied(name, taken):
            info = next((i for i in model.graph.input if i.name in taken[place : place + 1]), None)
            if info is None or place in seen:
                continue
            seen.add(place)
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            type = changed.graph.input[[*model.graph.input].index(info)].type.tensor_type
            type.elem_type = 10 if type.elem_type == 1 else 1
            yield changed


def _fault(model: onnx.ModelProto) -> str:
    try:
        onnxruntime.InferenceSession(model.SerializeToString())
    except Exception as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", TIED)
def test_every_operator_with_tied_inputs(name: str, tmp_path: Path) -> None:
    models = ill_typed(name)
    assert models, f"no ill-typed model of {name}"
    for model in models[:4]:
        for suffix in (".xml", ".onnx"):
            with pytest.raises(bridge.UnsupportedError, match="a Cast in front of"):
                bridge.convert(model, tmp_path / f"m{suffix}")
    assert not list(tmp_path.iterdir())


def test_most_operators_are_tied() -> None:
    assert len(TIED) > 55 and sum(len(ill_typed(name)) for name in TIED) > 100


ALIKE = "takes both of one type, so a Cast in front of one would mend it"
CASES = {
    "Where": (
        "(bool[2] c, int64[2] a, int32[2] b) => (int64[2] y) { y = Where(c, a, b) }",
        f"Where (x1): its inputs X and Y are tensor(int64) and tensor(int32); Where {ALIKE}",
        'first at graph / Where "y"',
    ),
    "all at once, in every body": (
        """(bool c, float[2] a, float16[2] b, int64[2] n) => (float[2] y, int64[2] z) {
            y = If <
                then_branch = g () => (float[2] s) { r = Add(a, b) s = Cast <to = 1> (r) },
                else_branch = h () => (float[2] t) { r = Sub(b, a) t = Cast <to = 1> (r) }
            > (c)
            z = Max(n, n, a) }""",
        'graph / If "y" / then_branch / Add "r"',
        'graph / If "y" / else_branch / Sub "r"',
        f"input 0 and input 2 are tensor(int64) and tensor(float); Max {ALIKE}",
    ),
    "places that are floats": (
        "(float[3] x, float[1] i) => (float[1] y) { y = Gather(x, i) }",
        "its input indices is tensor(float); Gather takes tensor(int32) or tensor(int64) there, so "
        "a Cast in front of it would mend it",
    ),
    "an operator of another domain": (
        "(float[2,3] x, double[2,1] w) => (float[2,4] y) "
        "{ y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [3, 1]> (x, w) }",
        "FeatureVectorizer takes both of one type",
    ),
    "computed inputs": (
        "(float[2] x) => (float[2] y) { h = Cast <to = 10> (x) y = Mul(x, h) }",
        f"its inputs A and B are tensor(float) and tensor(float16); Mul {ALIKE}",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_message(name: str, tmp_path: Path) -> None:
    text, *said = CASES[name]
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 21, "ai.onnx.ml": 1]> g {text}'
    )
    with pytest.raises(bridge.UnsupportedError) as refused:
        bridge.convert(model, tmp_path / "m.xml")
    assert all(each in str(refused.value) for each in said), str(refused.value)
    assert not list(tmp_path.iterdir())


LIBERAL = {
    # An integer of another width, which OpenVINO takes: one type alone is concerned.
    "axes of 32 bits": "(float[2,3] x, int32[1] a) => (float[2,1] y) { y = ReduceSum(x, a) }",
    "part of the model is cut off": (
        "(float[2] x, float16[2] h) => (float[2] y, float[2] z) { y = Abs(x) z = Add(x, h) }"
    ),
}


@pytest.mark.parametrize("name", LIBERAL)
def test_what_openvino_runs_is_converted(name: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 21]> g {LIBERAL[name]}')
    bridge.convert(model, tmp_path / "m.xml", outputs=["y"])


@pytest.mark.parametrize("op", ["ReduceLogSum", "ReduceLogSumExp"])
def test_an_earlier_operator_set_may_allow_more(op: str, tmp_path: Path) -> None:
    """Operator set 28 no longer allows integers."""
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
        g (int64[2, 3] x) => (int64[2, 1] y) <int64[1] axes = {{1}}> {{ y = {op} (x, axes) }}"""
    bridge.convert(onnx.parser.parse_model(text), tmp_path / "a.xml")


WRITTEN = {
    # What the schemas do not tie, and no layer takes: seen when the layers are there.
    "the operator's function ties them": (
        "(float[2,3] x, float16[3] w) => (float[2,3] y) { y = RMSNormalization <axis = -1> (x, w) }"
    ),
    "a sequence": (
        """(seq(float[2]) s, float16[2] x) => (float[n] y) {
             t = SequenceInsert (s, x) y = ConcatFromSequence <axis = 0> (t) }"""
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_layers_that_nothing_loads_are_not_written(name: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 23]> g {WRITTEN[name]}')
    with pytest.raises(bridge.UnsupportedError, match="a Cast in front of one"):
        bridge.convert(model, tmp_path / "m.xml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".xml", ".onnx"])
@pytest.mark.parametrize("scale", ["float[4]", "float[1]", "float[2,2]", "float"])
def test_group_normalization_has_a_scale_for_each_group(
    scale: str, suffix: str, tmp_path: Path
) -> None:
    """Of a constant of another size, the bytes were written, behind which all others moved."""
    numbers = {"float[4]": "{1,2,3,4}", "float[1]": "{1}", "float[2,2]": "{1,2,3,4}"}
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 18]> g (float[1,4,3] x) => (float[1,4,3] y)
        <{scale} s = {numbers.get(scale, "{1}")}, float[2] b = {{1, 2}}> {{
          y = GroupNormalization <num_groups = 2> (x, s, b) }}"""
    )
    with pytest.raises(bridge.BridgeError, match="are no factors for 2 groups"):
        bridge.convert(model, tmp_path / f"m{suffix}")
    assert not list(tmp_path.iterdir())
