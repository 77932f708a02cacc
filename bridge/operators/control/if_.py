"""If: ONNX 1 to 25, IR If-8. The two formats differ in the shape of the condition and in element
types."""

from bridge.operators import Builder, Node, Refused, Result, Value, legalizes
from bridge.operators.guarding import SafeInputs, Unsafe, guards
from bridge.operators.type_constraints import disallowed


@legalizes("If", target="ir")
def if_to_ir(b: Builder, node: Node) -> Result:
    """The condition of If-8 is a scalar or 1-D with one element. ONNX's condition has one element
    and any rank."""
    condition = node.operand(0)
    if condition.shape in ((), (1,)):
        return None
    inputs = [b.reshape(condition), *node.inputs[1:]]
    return b.node("If", inputs, len(node.outputs), {}, node.bodies, extras=node.extras).outputs


@legalizes("If", target="onnx")
def if_to_onnx(b: Builder, node: Node) -> Result:
    """The outputs of If may have more types in each newer operator set (11, 13, 16, ..., 25)."""
    refuse_newer_types(b, node)
    return None


def refuse_newer_types(b: Builder, node: Node) -> None:
    """Refuses an If or a Loop with an output type that needs a later operator set."""
    if why := disallowed(node.op, b.opset, (), node.outputs):
        raise Refused(why)


@guards("If")
def _if(b: Builder, node: Node, counts: Value) -> SafeInputs:
    raise Unsafe("it stays an If")
