"""The record of a quirk, and the pass for quirks that rewrite single nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import Analysis, Fact, Facts
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.rewrite import Pattern, Rewriter
from bridge.neutral.types import STRING, Element, is_static, size_of
from bridge.operators import Refused, Result
from bridge.options import release_number
from bridge.passes.context import Context
from bridge.passes.legalize import Legalizer, remember
from bridge.passes.uses import Uses

Run = Callable[[Graph, Context], bool | None]
"""Changes a graph and all nested graphs in place. Returns whether it changed any of them; None
means perhaps."""

Undo = Callable[[Builder, Node, Uses], Value | None]
"""Returns the value that the original node gave, or None if the quirk did not write this node."""

Guess = Callable[[Builder, Node], Iterable[Value]]
"""Makes, with the builder, the outputs that may have stood there before a quirk wrote the node."""


@dataclass(eq=False)
class Quirk:
    """A fault of an engine, and the pass that avoids it.

    `releases` are the releases with the fault, as far as it was seen. `symptom` is a sentence about
    the behaviour of the engine. `fires` names the nodes that the quirk rewrites. `safe` is the
    reason why the graph keeps its meaning. `cost` is the additional work or memory. `issue` is the
    upstream issue, if there is one.

    `run` rewrites a graph and all nested graphs. `undo` restores the original nodes on the way to
    ONNX. Its keys are the operators of the last node that `run` writes. `guess` makes candidates
    for the original nodes. A candidate is accepted if `run` turns it into the present nodes.
    """

    releases: str
    symptom: str
    fires: str
    safe: str
    cost: str
    run: Run
    issue: str = ""
    undo: Mapping[str, Undo] = field(default_factory=dict)
    guess: Mapping[str, Guess] = field(default_factory=dict)


class Place(Rewriter):
    """The rewriter of the graph around a node, with the results of analyses."""

    def __init__(self, graph: Graph, *around: Any) -> None:
        super().__init__(graph, *around)
        self._facts: dict[type[Any], Facts[Any]] = {}
        self.guards: bool = self.outer.guards if self.outer is not None else True
        """Whether a clause may guard a Loop.

        False if Ifs become selections. Also false for older releases, since a clause of their own
        guards each Loop that may not run.
        """
        self.fired: list[tuple[str, str]] = self.outer.fired if self.outer is not None else []
        """The module of each quirk that rewrote a node, with the path of the node."""
        self.ifs: bool = self.outer.ifs if self.outer is not None else True
        """Whether a quirk may write an If. False if Ifs become selections."""

    def facts(self, analysis: type[Analysis[Fact]]) -> Facts[Fact]:
        """The results of an analysis in the outermost graph, at the time of the first call."""
        if self.outer is not None:
            return self.outer.facts(analysis)
        if analysis not in self._facts:
            self._facts[analysis] = Facts(analysis(), self.graph)
        return self._facts[analysis]


ARITHMETIC = ("Add", "Div", "Max", "Min", "Mul", "Pow", "Sub")
"""Arithmetic that OpenVINO fuses into activations and normalizations."""

COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "NotEqual")

ELEMENTWISE = (
    *ARITHMETIC, "Abs", "Acos", "Acosh", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd",
    "BitwiseLeftShift", "BitwiseNot", "BitwiseOr", "BitwiseRightShift", "BitwiseXor", "Ceil",
    "Clip", "Cos", "Cosh", "Elu", "Equal", "Erf", "ErfInv", "Exp", "Floor", "Gelu", "Greater",
    "GreaterOrEqual", "HSigmoid", "HardSigmoid", "HardSwish", "IsFinite", "IsInf", "IsNaN", "Less",
    "LessOrEqual", "Log", "Mish", "Mod", "Neg", "Not", "NotEqual", "Or", "Relu", "Round", "Selu",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "SquaredDifference", "Swish",
    "Tan", "Tanh", "Where", "Xor", "ir::Mod",
)  # fmt: skip
"""The element-wise operators that IR has, with operands that are broadcast to one shape."""

PARTS = ("Gather", "Slice", "StridedSlice", "VariadicSplit", "ir::Split")
"""Operators whose result is a part of their first input."""

RECURRENT = (
    "GRUCell", "GRUSequence", "LSTMCell", "LSTMSequence", "RNNCell", "RNNSequence",
)  # fmt: skip
"""The recurrent layers that IR has."""


def may_hold(value: Value, output: Value) -> bool:
    """Whether an output that is computed from a value may use the memory of this value."""
    if value.element is not output.element:
        return False
    if is_static(value.shape) and is_static(output.shape):
        return size_of(value.shape) == size_of(output.shape)
    return True


def is_computed_in(element: Element) -> bool:
    """Whether the CPU plugin computes in this type. It only stores and converts the other types."""
    return (
        element.bits >= 8 and element is not STRING and (element.bits, element.kind) != (8, "float")
    )


GUARDED = "2026.3"
"""The last release for which the clause `states_of_no_iteration` guards every Loop that may not
run."""

ROOT = "bridge.quirks."
"""The package of the quirks."""

Rewrite = Callable[[Builder, Node, Place], Result]
"""Returns the new outputs of a node, or None if the fault does not appear."""


def rewriting(
    *ops: str,
    by: Rewrite,
    uses: bool = False,
    told: bool = True,
    where: Callable[[Node], bool] | None = None,
) -> Run:
    """A pass that calls `by` for each node of these operators, innermost bodies first, and expands
    the new nodes.

    `uses` says that `by` needs the readers of a value. The report names each node that was
    rewritten. If not `told`, `by` itself adds it to `Place.fired`. With `where`, only nodes for
    which it holds are rewritten, and a model without such a node is not searched further.
    """

    def run(graph: Graph, context: Context) -> bool:
        if where and not any(node.op in ops and where(node) for node in graph.walk()):
            return False
        legalizer = Legalizer(context.target, "neutral")

        def rewritten(b: Builder, node: Node, place: Place) -> Result:
            if where and not where(node):
                return None
            try:
                result = by(b, node, place)
            except Refused as refused:
                legalizer.report(node, place, str(refused))
                return None
            if result is None:
                return None
            if told:
                place.fired.append((by.__module__, place.path(node)))
            results = [result] if isinstance(result, Value) else list(result)
            legalizer.expand(b, node, place)
            made = [result and place.of(result) for result in results]
            remember(node, made, b.nodes, lambda: node.outputs)
            return results

        place = Place(graph)
        options = context.options
        asked = options.get("openvino")
        old = asked is not None and release_number(asked) <= release_number(GUARDED)
        place.ifs = options.get("ifs", "keep") == "keep"
        place.guards = place.ifs and not old
        changed = place.run(Pattern(rewritten, frozenset(ops), context.target, uses=uses))
        legalizer.finish()
        context.report.quirks += [(module.removeprefix(ROOT), path) for module, path in place.fired]
        return changed

    return run


def replace_outputs(
    graph: Graph, context: Context, by: Callable[[Builder, Value], Value | None]
) -> bool:
    """Gives the result of `by` in place of each output of the model, unless it is None. The names
    go with the outputs. Returns whether any output changed."""
    changed = False
    for index, value in enumerate(graph.outputs):
        with Builder(graph.nodes, value.name, context.target) as b:
            made = by(b, value)
        if made is None:
            continue
        made.names, value.names = list(value.names), []
        made.declared = value.declared
        graph.outputs[index] = made
        changed = True
    return changed
