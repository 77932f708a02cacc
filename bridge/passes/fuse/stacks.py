"""What Loops give that run no iteration, said once more behind them or around them: a stack of
nothing, of which nothing is taken, and an If whose other branch gives it."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Stacked, Yield
from bridge.neutral.signs import is_not_negative
from bridge.operators.control.idle import initial_states, shape_of_nothing
from bridge.passes.fuse.inverses import named_after
from bridge.passes.fuse.nothing import FAR
from bridge.passes.fuse.uses import Uses


def whole_stack(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A Slice of a stack that ends far behind it, or at its start where the Loop did not run, is
    the stack."""
    stack = node.inputs[0]
    loop = stack.producer if stack is not None else None
    if stack is None or loop is None or loop.op != "Loop" or stack.rank is None:
        return None
    start, _, axes, step = (integers(node.input(i)) for i in range(1, 5))
    if start != (0,) or axes is None or len(axes) != 1 or step not in (None, (1,)):
        return None
    along = {
        exit.axis % stack.rank
        for exit in loop.body.outputs
        if isinstance(exit, Stacked) and loop.outputs[exit.output] is stack
    }
    if along != {axes[0] % stack.rank} or not _is_end(node.inputs[2], loop):
        return None
    return named_after(stack, node, uses)


def guarded_loop(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A Loop in the branch of an If that asks whether it runs is the Loop, where the other branch
    gives what it gives when it does not."""
    *constants, loop = node.then_body.graph.nodes or [node]
    if loop.op != "Loop" or any(own.op != "Constant" for own in constants):
        return None
    outside = node.captures(node.then_body)
    inputs = [None if value is None else outside.get(value, value) for value in loop.inputs]
    places = _places(node.then_body, loop)
    if not places or not _asks(node.condition, inputs[:2]) or not _gives_back(node, loop, places):
        return None
    b.nodes += constants
    count = len(loop.outputs)
    made = b.node("Loop", inputs, count, loop.attributes, loop.bodies, loop.name, loop.extras)
    stand = {old: made.outputs[place] for old, place in zip(node.outputs, places, strict=True)}
    first = stand.pop(uses.output(node))
    for old, new in stand.items():
        uses.hand_over(old, new, inside=0)
    return first


def _places(body: Body, loop: Node) -> list[int]:
    """Which outputs of a Loop those of a branch are, in the order of its If's; none if others are
    among them, or the same one twice."""
    given = {port.output: value for value, port in body.exits() if isinstance(port, Yield)}
    values = [given[index] for index in sorted(given, key=lambda index: index or 0)]
    own = len(set(values)) == len(values) and all(value in loop.outputs for value in values)
    return [loop.outputs.index(value) for value in values] if own else []


def _gives_back(node: Node, loop: Node, places: list[int]) -> bool:
    """Whether the second branch of an If gives the initial states of a Loop, and for its stacks
    nothing, where sizes that are not known are 0, as they are in onnxruntime."""
    outer = node.captures(node.then_body), node.captures(node.else_body)
    states = initial_states(loop)
    axes = {exit.output: exit.axis for exit in loop.body.outputs if isinstance(exit, Stacked)}
    for value, port in node.else_body.exits():
        assert isinstance(port, Yield) and port.output is not None
        place = places[port.output]
        if place in states:
            initial = outer[0].get(states[place])
            if initial is None or outer[1].get(value) is not initial:
                return False
        elif place not in axes or value.shape != shape_of_nothing(loop.outputs[place], axes[place]):
            return False
    return True


def _is_end(end: Value | None, loop: Node) -> bool:
    """Whether a value is a far end, or 0 where the Loop runs no iteration."""
    choice = end.producer if end is not None else None
    if choice is None or choice.op != "Where" or integers(choice.inputs[2]) != (0,):
        return False
    far = integers(choice.inputs[1])
    return far is not None and far[0] >= FAR and _asks(choice.inputs[0], loop.inputs[:2])


def _asks(test: Value | None, heads: Sequence[Value | None]) -> bool:
    """Whether a test fails in no case but that in which a Loop with this trip count and condition
    runs no iteration."""
    trips, condition = heads
    if _is_scalar_of(test, condition):
        return True
    made = test.producer if test is not None else None
    if made is not None and made.op == "And":
        return all(_asks(part, heads) for part in made.inputs)
    if made is not None and made.op == "Greater" and integers(made.inputs[1]) == (0,):
        return _is_scalar_of(made.inputs[0], trips) and is_not_negative(trips)
    return False


def _is_scalar_of(value: Value | None, whole: Value | None) -> bool:
    """Whether a value is another one of one element, perhaps reshaped."""
    made = value.producer if value is not None else None
    reshaped = made is not None and made.op == "Reshape" and made.inputs[0] is whole
    return whole is not None and (value is whole or reshaped)
