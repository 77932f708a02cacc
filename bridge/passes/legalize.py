"""Rewrites operators that the target lacks into operators it has."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.elements import NoArray
from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.provenance import Provenance
from bridge.neutral.rewrite import Substitution, sink_constants
from bridge.neutral.verify import fingerprint
from bridge.operators import BREAKS, Refused, Result, Rule, legalization, unforeseen
from bridge.operators.element_types import integer_types, wider_types
from bridge.operators.spelling import choose
from bridge.operators.standard import inline_standard_function
from bridge.operators.validity import contradiction
from bridge.passes.context import Context
from bridge.passes.fold import fold_value
from bridge.vocabulary import operator

DEEPEST = 50
"""Rules within rules, before they are taken for a circle."""

TYPES: dict[str, tuple[Rule, ...]] = {"onnx": (integer_types, wider_types), "ir": ()}
"""Steps for all operators of a target, which bring inputs to types that it takes, so that the rules
of the operators need not."""


def legalize(model: Model, context: Context) -> None:
    """Rewrites, in place, every node that the target cannot spell.

    Raises UnsupportedError with all that are left.
    """
    legalizer = Legalizer(context.target, model.format, context.debug)
    legalizer.graph(model.graph, "graph")
    if legalizer.findings:
        raise UnsupportedError(str(context.target), legalizer.findings)


class Legalizer:
    """One run: bodies before the node that holds them, so that a rule sees what they became."""

    def __init__(self, target: Target, source: str, debug: bool = False) -> None:
        self.target = target
        self.source = source
        self.debug = debug
        self.findings: list[Unsupported] = []
        self._reported: set[Node] = set()

    def graph(self, graph: Graph, where: str) -> None:
        """Expands a graph and the bodies in it."""
        substitution = Substitution()
        nodes: list[Node] = []
        for node in graph.nodes:
            self.node(node, nodes, substitution, where)
        graph.nodes = nodes
        substitution.finish(graph)

    def node(
        self, node: Node, out: list[Node], substitution: Substitution, where: str, depth: int = 0
    ) -> None:
        """Appends to `out` the node, or what takes its place."""
        if node.op == "Constant":
            out.append(node)
            return
        substitution.apply(node)
        if node.bodies:
            sink_constants(node)
            for role, body in node.roles():
                self.graph(body.graph, f"{where} / {node!r} / {role}")
        try:
            made = self._by_rule(node)
            if made is None and (node.bodies or self._native(node)):
                if not (depth and self._known(node, out)):
                    out.append(node)
                return
            made = made or self._by_function(node, where)
        except (Refused, NoArray) as refused:
            self.report(node, where, str(refused))
            out.append(node)
            return
        if made is None:
            self.report(node, where, self._obstacle(node))
            out.append(node)
            return
        self.replace(node, *made, out, substitution, where, depth)

    def replace(
        self,
        node: Node,
        nodes: list[Node],
        results: list[Value | None],
        out: list[Node],
        substitution: Substitution,
        where: str,
        depth: int = 0,
    ) -> None:
        """Appends to `out` what `nodes` expand to, and has `results` stand for the outputs of the
        node."""
        if depth > DEEPEST:
            raise RecursionError(f"rules for {node.op} run in a circle")
        start = len(out)
        for new in nodes:
            self.node(new, out, substitution, where, depth + 1)
        for old, result in zip(node.outputs, results, strict=False):
            if result is not None:
                substitution.replace(old, result)
        if depth == 0 and self.target.format == "ir" and self.source == "onnx":
            remember(node, substitution.of(node.outputs[0]), out[start:])

    def _known(self, node: Node, out: list[Node]) -> bool:
        """Makes a Constant of a node that a rule for ONNX made, where what it gives is known: all
        is folded before, and on the way to IR behind, too."""
        if self.target.format != "onnx" or node.bodies or len(node.outputs) != 1:
            return False
        return fold_value(node.outputs[0], node, out)

    def _native(self, node: Node) -> bool:
        if operator(node.op) is None:
            known = node.op.partition("::")[0] in self.target.domains
            return (known or self.source == self.target.format) and not _is_no_operator(node)
        return choose(node, self.target)[0] is not None

    def _obstacle(self, node: Node) -> str:
        if _is_no_operator(node):
            return "its operator set has no such operator"
        return choose(node, self.target)[1]

    def _by_rule(self, node: Node) -> tuple[list[Node], list[Value | None]] | None:
        if self.source == self.target.format == "ir" and self._native(node):
            return None  # What came from IR is what IR means; rules are for what ONNX means.
        own = legalization(self.target.format, node.op)
        for rule in (*TYPES[self.target.format], own):
            if rule is None:
                continue
            nodes: list[Node] = []
            before = fingerprint(node) if self.debug else None
            result = _asked(rule, Builder(nodes, node.name, self.target), node)
            if before is not None and fingerprint(node) != before:
                raise AssertionError(f"{rule.__module__}.{rule.__name__} changed {node!r}")
            if result is not None:
                return nodes, [result] if isinstance(result, Value) else list(result)
        return None

    def _by_function(self, node: Node, where: str) -> tuple[list[Node], list[Value | None]] | None:
        row = operator(node.op)
        if row is None or not row.onnx:
            return None
        nodes: list[Node] = []
        builder = Builder(nodes, node.name, self.target)
        results = inline_standard_function()(builder, node, f"{where} / {node!r}")
        if results is None:
            return None
        results = [None if r is None else _made_by(nodes, r) for r in results]
        for old, result in zip(node.outputs, results, strict=False):
            if result is not None and result.producer in nodes:
                # People know it by the name that the node gave it, not by that in the function.
                result.names[:0] = old.names
        return nodes, results

    def report(self, node: Node, where: str, why: str) -> None:
        """Notes why a node cannot be written, once."""
        if node not in self._reported:
            self._reported.add(node)
            self.findings.append(Unsupported(node.op, f"{where} / {node!r}", why))


def remember(node: Node, made: Value, nodes: Sequence[Node]) -> None:
    """Notes with the one of `nodes` that gives a value which node they all stand for, where others
    might stand for it too."""
    row, maker, extras = operator(node.op), made.producer, node.extras or {}
    if maker is None or maker not in nodes or maker.bodies or maker.op == "Constant":
        return
    if "provenance" in extras:
        maker.extras = {**(maker.extras or {}), "provenance": extras["provenance"]}
        return
    if row is None or "recorded" not in row.traits or len(node.outputs) != 1:
        return
    if maker.op == node.op and all(other is maker or other.op == "Constant" for other in nodes):
        return
    said = {k: v for k, v in node.attributes.items() if v != row.defaults.get(k)}
    maker.extras = {**(maker.extras or {}), "provenance": Provenance(node.op, said, node.inputs)}


def _made_by(nodes: Sequence[Node], value: Value) -> Value:
    """What a value is a copy of, if one of the nodes makes that."""
    original = value.behind("Identity")
    return original if original.producer in nodes else value


_UNCHECKED = ("ai.onnx.ml::", "com.microsoft::")
"""Domains of whose operators nothing says which attributes and shapes go together."""


def _asked(rule: Rule, b: Builder, node: Node) -> Result:
    """What a rule makes of a node. What breaks the rule is the node's fault where its inputs do not
    go together, or where nobody has looked it over before."""
    try:
        return rule(b, node)
    except BREAKS as error:
        if node.op.startswith(_UNCHECKED):
            raise Refused(unforeseen(error)) from error
        if why := contradiction(node):
            raise Refused(why) from error
        raise


def _is_no_operator(node: Node) -> bool:
    """Whether ONNX itself does not know the operator: the vocabulary has all that it knows."""
    return node.op.startswith("ai.onnx::") and operator(node.op) is None
