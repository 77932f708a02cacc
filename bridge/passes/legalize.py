"""Rewrites operators that the target lacks into operators it has."""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.attributes import Attributes
from bridge.neutral.builder import Builder, Target
from bridge.neutral.captures import sink_constants
from bridge.neutral.extras import Provenance
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.inference import BREAKS, UNCHECKED, faults_of
from bridge.neutral.inference.constraints import contradiction
from bridge.neutral.inference.known import known_of
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.verify import fingerprint
from bridge.operators import Refused, Rule, legalization, unforeseen
from bridge.operators.element_types import steps_of
from bridge.operators.reading import applied
from bridge.operators.spelling import choose
from bridge.operators.standard import inline_standard_function
from bridge.passes.applies import always, applies
from bridge.passes.context import Context
from bridge.passes.fold import fold_value
from bridge.vocabulary import family_of, operator
from bridge.vocabulary.elements import NoArray

DEEPEST = 50
"""Rules within rules, before they are taken for a circle."""

Forms = Mapping[str, Rule]
"""Rules of a target, by operator."""


def _is_computed(value: Value | None) -> bool:
    return value is not None and value.computed is not None and value.constant is None


@applies(always)
def legalize(model: Model, context: Context, forms: Forms | None = None) -> bool:
    """Rewrites, in place, every node that the target cannot spell. `forms` are rules of the target,
    by operator, which come before the rules of the operators.

    Raises UnsupportedError with all nodes that are left.
    """
    debug = bool(context.options.get("debug"))
    return Legalizer(context.target, model.format, debug, forms).legalize(model.graph)


class Legalizer:
    """One run. Bodies come before their node, so that a rule sees the rewritten bodies."""

    def __init__(
        self,
        target: Target,
        source: str,
        debug: bool = False,
        forms: Forms | None = None,
    ) -> None:
        self.target = target
        self.source = source
        self.debug = debug
        self.forms = forms or {}
        self.findings: list[Unsupported] = []
        self._reported: set[Node] = set()
        self._used: dict[Graph, set[Value]] = {}
        self._pattern = Pattern(self._legalized, target=target, bodies=False)

    def legalize(self, graph: Graph) -> bool:
        """Legalizes a graph and the bodies in it, in place; returns whether it changed.

        Raises UnsupportedError with all nodes that are left.
        """
        changed = Rewriter(graph).run(self._pattern)
        self.finish()
        return changed

    def finish(self) -> None:
        """Raises UnsupportedError with the reported nodes."""
        if self.findings:
            raise UnsupportedError(str(self.target), self.findings)

    def _legalized(self, b: Builder, node: Node, rewriter: Rewriter) -> Result:
        if node.bodies:
            rewriter.changed |= sink_constants(node)
            rewriter.descend(node, self._pattern)
        try:
            results = self._by_rule(b, node)
            if results is None and (node.bodies or self._native(node)):
                known = rewriter.depth and self._known(b, node)
                return node.outputs if known or self._with_constants(b, node) else None
            results = results or self._by_function(b, node, rewriter)
        except (Refused, NoArray) as refused:
            self.report(node, rewriter, str(refused))
            return None
        if results is None:
            self.report(node, rewriter, self._obstacle(node))
            return None
        for index, (old, new) in enumerate(zip(node.outputs, results, strict=False)):
            if new is None and old in self.used_in(rewriter.graph):
                why = f"its output {index} is for training, or no one tensor; let nothing read it"
                self.report(node, rewriter, why)
                return None
        self.expand(b, node, rewriter)
        if rewriter.depth == 0 and self.target.format == "ir" and self.source == "onnx":
            made = [result and rewriter.of(result) for result in results]
            remember(node, made, b.nodes, lambda: self.used_in(rewriter.graph))
        return results

    def used_in(self, graph: Graph) -> set[Value]:
        """The outputs of a graph and the inputs of its nodes, as they were at the first question.
        Later nodes have not changed since."""
        if graph not in self._used:
            taken = (v for node in graph.nodes for v in node.inputs if v is not None)
            self._used[graph] = {*graph.outputs, *taken}
        return self._used[graph]

    def expand(self, b: Builder, node: Node, rewriter: Rewriter) -> None:
        """Legalizes the nodes that a rule made of a node; the builder holds them."""
        if rewriter.depth >= DEEPEST:
            raise RecursionError(f"rules for {node.op} run in a circle")
        b.nodes[:] = rewriter.rewritten(b.nodes, self._pattern)

    def _known(self, b: Builder, node: Node) -> bool:
        """Makes a Constant of a node that a rule for ONNX made, if its output is known. All nodes
        are folded before, and on the way to IR also afterwards."""
        if self.target.format != "onnx" or node.bodies or len(node.outputs) != 1:
            return False
        return fold_value(node.outputs[0], node, b.nodes)

    def _with_constants(self, b: Builder, node: Node) -> bool:
        """Makes Constants of known inputs that become attributes, so that the nodes that compute
        them go."""
        row = operator(node.op)
        spelling = choose(node, self.target)[0] if any(map(_is_computed, node.inputs)) else None
        if row is None or spelling is None:
            return False
        places = [row.places[name] for name in spelling.as_attributes]
        places = [i for i in places if _is_computed(node.input(i))]
        for place in places:
            node.inputs[place] = b.constant(known_of(node.inputs[place]).array)
        if places:
            b.nodes.append(node)
        return bool(places)

    def _native(self, node: Node) -> bool:
        if operator(node.op) is None:
            known = node.op.partition("::")[0] in self.target.domains
            return (known or self.source == self.target.format == "ir") and not _is_no_operator(
                node
            )
        return choose(node, self.target)[0] is not None

    def _obstacle(self, node: Node) -> str:
        if _is_no_operator(node) and "why" not in (node.extras or {}):
            return "its operator set has no such operator"
        return choose(node, self.target)[1]

    def _by_rule(self, b: Builder, node: Node) -> list[Value | None] | None:
        if self.source == self.target.format == "ir" and self._native(node):
            return None  # Nodes from IR already have IR's meaning; rules are for ONNX's meaning.
        own = legalization(self.target.format, node.op)
        if own is None and family_of(node.op) == "microsoft" and not self._native(node):
            own = legalization("ir", node.op)  # Its operators exist in both targets.
        types = steps_of(node.op) if self.target.format == "onnx" else ()
        for rule in (*types, self.forms.get(node.op), own):
            if rule is None:
                continue
            before = fingerprint(node) if self.debug else None
            result = self._asked(rule, b, node)
            if before is not None and fingerprint(node) != before:
                raise AssertionError(f"{rule.__module__}.{rule.__name__} changed {node!r}")
            if result is not None:
                return [result] if isinstance(result, Value) else list(result)
            b.nodes.clear()
        return None

    def _asked(self, rule: Rule, b: Builder, node: Node) -> Result:
        """The result of a rule for a node. If the rule breaks, the node is at fault if its inputs
        contradict each other, or if nothing has checked the node before."""
        try:
            # What a row lists is known, so a rule may leave out what has no effect.
            return (rule if operator(node.op) else partial(applied, rule))(b, node)
        except faults_of(node.op) as error:
            if why := contradiction(node):
                raise Refused(why) from error
            if self.debug and not isinstance(error, BREAKS):
                raise
            if self.source == "ir" or node.op.startswith(UNCHECKED):
                raise Refused(unforeseen(error)) from error
            raise

    def _by_function(self, b: Builder, node: Node, rewriter: Rewriter) -> list[Value | None] | None:
        row = operator(node.op)
        if row is None or not row.onnx:
            return None
        made = inline_standard_function()(b, node, rewriter.path(node))
        if made is None:
            return None
        results = [None if r is None else _made_by(b.nodes, r) for r in made]
        for old, result in zip(node.outputs, results, strict=False):
            if result is not None and result.producer in b.nodes:
                # Users know the value by the name in the model, not by the name in the function.
                result.names[:0] = old.names
        return results

    def report(self, node: Node, rewriter: Rewriter, why: str) -> None:
        """Notes why a node cannot be written, once."""
        if node not in self._reported:
            self._reported.add(node)
            self.findings.append(Unsupported(node.op, rewriter.path(node), why))


def remember(
    node: Node,
    results: Sequence[Value | None],
    nodes: Sequence[Node],
    used: Callable[[], Container[Value]],
    of_quirk: bool = False,
) -> None:
    """Notes the original node with the last of `nodes` that gives one of the results, if others
    might replace it too, or if a quirk says so. `used` are the values with users."""
    former = (node.extras or {}).get("provenance")
    if former is None and not of_quirk and not _is_recorded(node, results, nodes):
        return
    places = {maker: i for i, maker in enumerate(nodes) if maker.op != "Constant"}
    several = len(node.outputs) > 1
    wanted = used() if several else node.outputs
    outputs = [
        made if made is not None and made.producer in places and old in wanted else old
        for old, made in zip(node.outputs, results, strict=False)
    ]
    makers = [value.producer for value in outputs if value.producer in places]
    maker = max(makers, key=places.__getitem__, default=None)
    if maker is None:
        return
    same = maker.op == node.op and all(o is maker or o.op == "Constant" for o in nodes)
    if former is not None:
        stands = dict(zip(node.outputs, results, strict=False))
        former = former.of(lambda value: stands.get(value) or value)
    elif same and not of_quirk:
        return
    if of_quirk or former is None:
        parts_of = outputs if several else ()
        former = Provenance(node.op, _said(node), node.inputs, parts_of, of_quirk, former)
    maker.extras = {**(maker.extras or {}), "provenance": former}


def _is_recorded(node: Node, results: Sequence[Value | None], nodes: Sequence[Node]) -> bool:
    """Whether others might replace the results of a node too, by its row."""
    row = operator(node.op)
    if row is None or ("recurrent" in row.traits and any(made.bodies for made in nodes)):
        return True
    if "recorded" in row.traits:
        # One node that gives several outputs is known by its row.
        makers = {value.producer for value in results if value is not None}
        if len(node.outputs) == 1 or len(makers) != 1 or "::" in node.op:
            return True
    of_constants = all(value is None or value.constant is not None for value in node.inputs)
    return "recorded_of_constants" in row.traits and of_constants


def _said(node: Node) -> Attributes:
    """The attributes of a node that are not the defaults."""
    row = operator(node.op)
    defaults = row.defaults if row is not None else {}
    return {k: v for k, v in node.attributes.items() if v != defaults.get(k)}


def _made_by(nodes: Sequence[Node], value: Value) -> Value:
    """The source of a value that is a copy, if one of the nodes makes the source."""
    original = value.behind("Identity")
    return original if original.producer in nodes else value


def _is_no_operator(node: Node) -> bool:
    """Whether ONNX itself does not know the operator: the vocabulary has all that it knows."""
    return node.op.startswith("ai.onnx::") and operator(node.op) is None
