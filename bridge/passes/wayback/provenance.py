"""Replaces nodes by the one node that they were in the ONNX model from which an IR was made.

The IR's record names that node (`bridge.neutral.extras`). The record is a hint. It is used only
if expanding the ONNX node for IR again gives exactly the present nodes."""

from collections.abc import Callable, Collection, Iterable, Sequence

from bridge.neutral.attributes import fault_of
from bridge.neutral.builder import Builder, Target
from bridge.neutral.extras import Provenance
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.match import ValuePair
from bridge.operators.spelling import choose
from bridge.passes.fake_quantize import fake_quantize
from bridge.passes.legalize import Legalizer
from bridge.passes.uses import Uses
from bridge.passes.wayback.replay import IR, becomes
from bridge.vocabulary import operator

Within = Callable[[Node, Sequence[ValuePair]], Collection[Node] | None]
"""The nodes that stand for a made node, whose outputs the pairs say; None if they do not."""


def recorded_node(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The recorded ONNX node, if expanding it gives the present nodes."""
    provenance, target = (node.extras or {}).get("provenance"), b.target
    assert target is not None
    if provenance is None or provenance.of_quirk:
        return None

    def within(made: Node, pairs: Sequence[ValuePair]) -> Collection[Node] | None:
        return _within(made, pairs) if _is_writable(made, target) else None

    value = restored(b, node, uses, provenance, within)
    if value is not None and value.producer is not None:
        value.producer.extras = {**(value.producer.extras or {}), "restored": True}
    return value


def restored(
    b: Builder, node: Node, uses: Uses, provenance: Provenance, within: Within
) -> Value | None:
    """The value of a recorded node that a node stands for, with others that lead to it. `within`
    gives all of them, if the recorded node becomes them on the way to IR."""
    output = uses.output(node)
    outputs = provenance.outputs or (output,)
    there = [value for value in outputs if value.producer is not None]
    if output not in there or any(uses.count(v) and v not in there for v in node.outputs):
        return None
    inputs = [value for value in provenance.inputs if value is not None]
    lost = _lost(inputs, node, uses)
    if fault_of(provenance.op, provenance.attributes) or lost is None:
        return None
    b.nodes += (maker for maker in lost if maker.op != "Constant")
    made = b.node(provenance.op, provenance.inputs, len(outputs), dict(provenance.attributes))
    pairs = [(new, old) for new, old in zip(made.outputs, outputs, strict=True) if old in there]
    found = within(made, pairs)
    taken = {v: v.producer for one in (made, *lost) for v in one.inputs if v is not None}
    kept = [value for value, maker in taken.items() if maker not in lost]
    if found is None or (len(there) > 1 and not uses.put_before(kept, there)):
        return None
    if any(_stays(one, there, found, uses) for one in found):
        return None
    b.nodes[:] = [one for one in b.nodes if one not in lost]
    for maker in lost:
        uses.prepend(maker)
    _place_outputs(made, outputs, output, found, uses)
    return next(new for new, old in pairs if old is output)


def _lost(values: Iterable[Value], node: Node, uses: Uses) -> list[Node] | None:
    """The nodes that give these values and are not in front of a node, in order. None if one of
    them needs a value that is not there."""
    found: dict[Node, None] = {}

    def find(value: Value) -> bool:
        maker = value.producer
        if uses.is_before(value, node) or maker in found:
            return True
        if maker is None or (uses.is_there(value) and maker.op != "Constant"):
            return False
        if not all(find(taken) for taken in maker.inputs if taken is not None):
            return False
        found[maker] = None
        return True

    return list(found) if all(map(find, values)) else None


def _place_outputs(
    recorded: Node, outputs: Sequence[Value], output: Value, within: Iterable[Node], uses: Uses
) -> None:
    """Replaces the recorded values by the outputs of a node, except one `output`. Unused outputs
    keep their names, because an engine may ask for them."""
    for new, old in zip(recorded.outputs, outputs, strict=True):
        if old.producer is None:
            new.names += old.names
        elif old is not output:
            uses.hand_over(old, new, sum(list(user.inputs).count(old) for user in within))


def _is_writable(node: Node, target: Target) -> bool:
    """Whether ONNX has the operator or a rule for it, or the model had others of its domain."""
    row = operator(node.op)
    if row is None:
        return node.op.partition("::")[0] in target.domains
    return not (row.onnx or row.ir) or choose(node, target)[0] is not None


def _stays(node: Node, there: Collection[Value], within: Collection[Node], uses: Uses) -> bool:
    """Whether other nodes read a Loop that stands for a recorded node: it would run twice."""
    inner = (value for value in node.outputs if node.bodies and value not in there)
    return any(user not in within for value in inner for user in uses.users(value))


def _within(recorded: Node, pairs: Sequence[ValuePair]) -> Collection[Node] | None:
    """The nodes that stand for an ONNX node. Kernels may take its outputs or not."""
    for taken in (False, True):

        def legalize(graph: Graph, taken: bool = taken) -> bool:
            Legalizer(IR, "onnx").legalize(graph)
            return fake_quantize(graph, taken)

        nodes = becomes([recorded], pairs, legalize)
        if nodes is not None:
            return nodes
    return None
