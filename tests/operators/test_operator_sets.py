"""A model written for an older operator set is valid there: its operators have these types."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import bridge
from tests.conformance.cases import cases
from tests.support import sample

OPSETS = [11, 13, 17, 20, 22]


@pytest.mark.parametrize("opset", OPSETS)
def test_standard_models_in_an_older_operator_set(opset: int) -> None:
    """Each case goes to one of the operator sets; `--whole` writes it for all."""
    written, broken = 0, []
    for place, (name, case) in enumerate(cases().items()):
        if not sample.WHOLE and place % len(OPSETS) != OPSETS.index(opset):
            continue
        try:
            onnx.checker.check_model(case.model, full_check=True)
            model = bridge.to_onnx(case.model, opset=opset)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            continue  # The checker cannot verify this even for the case itself.
        except bridge.UnsupportedError:
            continue
        try:
            onnx.checker.check_model(model, full_check=True)
            written += 1
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            broken.append(f"{name}: {error}")
    assert not broken, "\n".join(broken)
    least = 1500 if opset >= 13 else 1200  # Older sets lack more operators.
    assert written > least // (1 if sample.WHOLE else len(OPSETS))


# The graph's inputs and outputs, its nodes, the operator set to write, and the message if that set
# lacks the types.
TYPES = [
    ("bool[2] c, bfloat16[2] x", "bfloat16[2] y", "y = Where(c, x, x)", 13, None),
    ("bfloat16[1,1,4] x, bfloat16[1,1,2] w", "bfloat16[1,1,3] y", "y = Conv(x, w)", 21, None),
    ("float16[3] x", "float16[3] y", "y = Celu(x)", 27, None),
    ("bfloat16[3] x", "bfloat16[3] y", "y = ThresholdedRelu(x)", 21, None),
    ("float[2] x", "bool y", "y = OptionalHasElement(x)", 17, None),
    ("float[2] x", "float[2] y", "y = OptionalGetElement(x)", 17, None),
    ("string[2] x", "bool[2] y", "y = Equal(x, x)", 18, "tensor(string) before operator set 19"),
    ("int8[2] x", "int8[2] y", 'y = BitShift<direction="LEFT">(x, x)', 27, "no tensor(int8)"),
    ("string[2,2] x", "string[2,2] y", "y = Trilu(x)", 13, "since operator set 14"),
    (
        "bool c, float8e4m3fn[2] x",
        "float8e4m3fn[2] y",
        "y = If(c) <then_branch = t () => (float8e4m3fn[2] p) { p = Identity(x) }, "
        "else_branch = e () => (float8e4m3fn[2] q) { q = Identity(x) }>",
        18,
        "tensor(float8e4m3fn) before operator set 19",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "outputs", "nodes", "opset", "refusal"), TYPES)
def test_types_that_came_later(
    inputs: str, outputs: str, nodes: str, opset: int, refusal: str | None
) -> None:
    header = '<ir_version: 13, opset_import: ["": 28]>'
    model = onnx.parser.parse_model(f"{header} g ({inputs}) => ({outputs}) {{ {nodes} }}")
    if refusal is not None:
        with pytest.raises(bridge.UnsupportedError) as caught:
            bridge.to_onnx(model, opset=opset)
        assert refusal in str(caught.value)
        return
    written = bridge.to_onnx(model, opset=opset)
    onnx.checker.check_model(written, full_check=True)
    assert written.opset_import[0].version == opset
