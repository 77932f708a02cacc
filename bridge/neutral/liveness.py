"""Which values are needed: an output or an effect depends on them."""

from bridge.neutral.dataflow import Analysis, Facts, Now, Updates
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Carried, Condition, InputPort, Sliced, outer_input
from bridge.neutral.rewrite import EFFECTS


class Needed(Analysis[bool]):
    """Whether a value is needed. A state of a Loop is not that only a next iteration reads."""

    bottom = False
    backward = True

    def join(self, one: bool, other: bool) -> bool:
        """Whether either needs it."""
        return one or other

    def outside(self, value: Value) -> bool:
        """Outputs of the graph are needed."""
        return True

    def node(self, node: Node, now: Now[bool]) -> Updates[bool]:
        """A needed output needs all inputs."""
        needed = node.op in EFFECTS or any(map(now, node.outputs))
        return [(value, needed) for value in node.operands]

    def leave(self, node: Node, now: Now[bool]) -> Updates[bool]:
        """Conditions are needed, and body outputs that become a needed output."""
        for body in node.bodies:
            for value, port in body.exits():
                if isinstance(port, Condition):
                    yield value, True
                elif port.output is not None:
                    yield value, now(node.outputs[port.output])

    def enter(self, node: Node, now: Now[bool]) -> Updates[bool]:
        """The outer values, and the values of the iteration before, that a body needs."""
        yield from ((v, True) for v in node.inputs[: 1 if node.op == "If" else 2] if v is not None)
        for body in node.bodies:
            for value, port in body.entries():
                outer = node.outer(port)
                if outer is not None:
                    yield outer, now(value) or _counts(node, body, port, now)
                if isinstance(port, Carried):
                    yield body.exit_of(port)[0], now(value)


def unneeded_inputs(node: Node, facts: Facts[bool]) -> set[int]:
    """The inputs of a Loop that no iteration needs, and that do not decide how often it runs."""
    entries = [(outer_input(port), value, port) for value, port in node.body.entries()]
    needed = {
        index
        for index, value, port in entries
        if facts.of(value) or _counts(node, node.body, port, facts.of)
    }
    return {index for index, _, _ in entries if index is not None} - needed


def _counts(node: Node, body: Body, port: InputPort, now: Now[bool]) -> bool:
    """Whether a Loop needs the input at a port even if no iteration reads it. Slices say how often
    it runs, and a Loop without iterations outputs the first state."""
    if isinstance(port, Carried):
        exit = body.exit_of(port)[1]
        return isinstance(exit, Condition) or (
            exit.output is not None and now(node.outputs[exit.output])
        )
    return isinstance(port, Sliced) and node.trip_count is None
