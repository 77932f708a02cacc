"""States of a Loop that keep their initial values."""

from bridge.neutral.captures import drop_unread_captures, keep_outputs
from bridge.neutral.ports import Carried, Invariant, Yield
from bridge.operators import Builder, Node, Value
from bridge.operators.control.loop_builder import LoopBuilder


def no_state(b: Builder, node: Node) -> list[Value] | None:
    """A Loop with a plain input in place of each unchanged state, and a value for each output. None
    if no state is unchanged."""
    body = node.body
    outer = node.captures(body)
    loop_builder = LoopBuilder.of(node)
    unchanged: dict[int | None, Value] = {}
    gone: set[int] = set()
    for value, port, initial in node.states():
        result, exit = body.exit_of(port)
        again = result.behind("Identity")
        if port.input is None or not isinstance(exit, Yield):
            continue
        if again is value or outer.get(again) is initial:
            index = body.graph.inputs.index(value)
            loop_builder.body.inputs[index] = Invariant(port.input)
            gone.add(port.output)
            unchanged[exit.output] = initial
    if not unchanged:
        return None
    gone -= {port.output for port in loop_builder.body.inputs if isinstance(port, Carried)}
    loop_builder.body.keep_exits([i for i in range(len(body.outputs)) if i not in gone])
    results = list(node.outputs)
    left = [index for index in range(len(results)) if index not in unchanged]
    if left:
        changed = _without(b, loop_builder, left)
        for index, value in zip(left, changed, strict=True):
            results[index] = value
    for output, initial in unchanged.items():
        if output is not None:  # None: no output shows the state.
            results[output] = initial
    return results


def _without(b: Builder, loop_builder: LoopBuilder, left: list[int]) -> list[Value]:
    """The Loop with only the outputs in `left` and the inputs that its body then reads. Without
    this, a later pass would assume that the Loop needs the other outputs."""
    body = loop_builder.body
    keep_outputs([body], left)
    drop_unread_captures(body, loop_builder.inputs[0] is not None)
    loop_builder.drop_unused_inputs()
    old = loop_builder.node
    made = b.node("Loop", loop_builder.inputs, len(left), {}, (body,), extras=old.extras).outputs
    for index, value in zip(left, made, strict=True):
        value.type = value.declared = old.outputs[index].type
    return list(made)
