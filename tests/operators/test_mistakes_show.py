"""A mistake in our functions shows; a node that says nothing, or too little, is refused."""

import onnx
import onnx.parser
import pytest

import bridge
import bridge.library.api
from bridge.neutral import inference
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import F32, UNKNOWN, OptionalType, TensorType
from bridge.operators import legalizations

HEAD = '<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1, "ai.onnx.ml": 3]>\n'
MODEL = (
    HEAD
    + "m (float[2,3] x) => (float[a,b] y) { t = Transpose <perm = [1, 0]> (x) y = Flatten (t) }"
)


def mistaken(*_: object) -> None:
    """Asks None for something, as a function with a mistake does."""
    None.shape  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("debug", [True, False])
def test_a_mistake_shows(debug: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge.library.api, "DEBUG", debug)
    inference.load_operator("Flatten")
    for table, key in ((inference._inferences, "Flatten"), (legalizations, ("ir", "Flatten"))):
        with monkeypatch.context() as patch, pytest.raises(AttributeError, match="shape"):
            patch.setitem(table, key, mistaken)  # type: ignore[call-overload]
            bridge.to_openvino(onnx.parser.parse_model(MODEL))


def test_what_a_function_does_not_know_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    inference.load_operator("Flatten")
    monkeypatch.setitem(inference._inferences, "Flatten", lambda node: [node.operand(0).dims[0]])
    node = Node("Flatten", [Value(TensorType(F32))], [Value()], {"axis": 1})
    with inference.strictly():
        inference.infer(node)
    assert node.outputs[0].type == UNKNOWN


def test_an_optional_of_an_unknown_type_is_an_optional() -> None:
    made = Node("Optional", [Value(TensorType(None, (2, "n")))], [Value()])
    inference.infer(made)
    assert made.outputs[0].type == OptionalType(TensorType(None, (2, "n")))
    taken = Node("OptionalGetElement", made.outputs, [Value()])
    inference.infer(taken)
    assert taken.outputs[0].type == TensorType(None, (2, "n"))


REFUSED = {
    "its attribute axis is STRING, not INT": 'y = Softmax <axis = "x"> (x)',
    "it lacks the attribute `num_heads`": "y = com.microsoft.MultiHeadAttention (x, x, x)",
    "its attribute `axis` is (1, 2)": (
        "s = Constant <value_float = 0.5> () q = Cast <to = 3> (x)"
        "y = com.microsoft.DequantizeLinear <axis = [1, 2]> (q, s)"
    ),
}


@pytest.mark.parametrize("says", REFUSED)
def test_attributes_that_lack_or_have_another_type(says: str) -> None:
    text = f"{HEAD}m (float[2,3,4] x) => (float[a,b,c] y) {{ {REFUSED[says]} }}"
    with pytest.raises(bridge.BridgeError) as refusal:
        bridge.to_openvino(onnx.parser.parse_model(text))
    assert says in str(refusal.value)
