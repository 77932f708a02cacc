"""The possible shapes of a tensor in a branch, from the branch's condition.

Exporters write an early return, a break or a continue as an If. It gives a flag and the value, or a
dummy of another rank if there is no value. A later If tests the flag, and takes the value in the
branch that the flag allows.
"""

from bridge.neutral.graph import Body, Node, Value, operand_of
from bridge.neutral.inference.known import known_of
from bridge.passes.sequences.shape_vectors import Dims, PossibleShapes, joined

Exit = tuple[Value, PossibleShapes]
"""The output of a branch for one output of its If, and its possible shapes."""


class Branches:
    """The Ifs of the graph before it is lowered, and the inputs of their bodies."""

    def __init__(self) -> None:
        self._exits: dict[Node, list[list[Exit]]] = {}
        self._outer: dict[Value, Value] = {}
        self._answers: dict[tuple[Value, Value, bool], PossibleShapes] = {}

    def enter(self, node: Node, body: Body) -> None:
        """Remembers the outer values of the inputs of a body."""
        self._outer.update(node.captures(body))

    def leave(self, node: Node, exits: list[list[Exit]]) -> None:
        """Remembers the branches' outputs for each output of an If, then_branch first."""
        self._exits[node] = exits

    def shapes_where(self, value: Value, condition: Value, truth: bool) -> PossibleShapes:
        """The possible shapes of a tensor if a condition is `truth`; None if it does not
        depend on the condition."""
        value = value.behind(outside=self._outer)
        node = value.producer
        if node is None or node not in self._exits:
            return None
        question = (value, *self._stripped(condition, truth))
        if question not in self._answers:
            self._answers[question] = self._shapes(node, *question)
        return self._answers[question]

    def _shapes(self, node: Node, value: Value, condition: Value, truth: bool) -> PossibleShapes:
        """The answer, for an output of an If and the value that decides."""
        deciding, in_then = self._stripped(node.operand(0), True)
        possible: list[Dims] = []
        for exits, runs in zip(self._exits[node], (in_then, not in_then), strict=True):
            exit, shapes = exits[node.outputs.index(value)]
            if deciding is condition and runs != truth:
                continue
            if condition.producer is node:
                flag, wanted = self._stripped(exits[node.outputs.index(condition)][0], truth)
                known = known_of(flag).ints
                if known is not None and known != (wanted,):
                    continue
                shapes = self.shapes_where(exit, flag, wanted) or shapes
            if shapes is None:
                return None
            possible += shapes
        return joined(possible) or None

    def _stripped(self, condition: Value, truth: bool) -> tuple[Value, bool]:
        """The value that decides a condition, and its truth if the condition is `truth`."""
        while True:
            condition = condition.behind("Identity", outside=self._outer)
            denied = operand_of(condition, "Not")
            if denied is None:
                return condition, truth
            condition, truth = denied, not truth
