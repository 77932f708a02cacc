"""Checks a model before it is written: a file that breaks the rules of its format is worse than a
refusal. `bridge.targets.limits` checks the further limits of an engine."""

from collections.abc import Callable, Iterable, Iterator

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.inference.constraints import contradictions
from bridge.neutral.ports import Carried
from bridge.neutral.signature import wrong_count
from bridge.neutral.verify import verify
from bridge.operators.spelling import layer_fault, type_fault
from bridge.passes.applies import always, applies, reads
from bridge.passes.context import Context


@applies(reads("onnx"))
def refuse_ill_typed(model: Model, context: Context) -> None:
    """Raises UnsupportedError with the nodes of a model from ONNX whose inputs have types that do
    not go together. No engine would load it, nor the IR."""
    findings = list(found(model.graph, lambda node: filter(None, (type_fault(node),))))
    if findings:
        raise UnsupportedError(str(context.target), findings)


@applies(always)
def check_legality(model: Model, context: Context) -> None:
    """Raises VerificationError if the graph breaks a rule of the neutral graph, and
    UnsupportedError with the nodes that the target's specification does not allow.

    A model from a file of the same format is not checked again. For ONNX, branches of Ifs are not
    checked, because only OpenVINO looks for nodes that cannot run when it opens a model.
    """
    verify(model.graph)
    if model.format == context.target.format:
        return
    to_onnx = context.target.format == "onnx"
    failing = context.ask(contradictions, model.graph)

    def faults(node: Node) -> tuple[str, ...]:
        """The faults of a node by the rules of both formats, the first one first."""
        why = _negative_padding(node) if to_onnx else layer_fault(node)
        why = why or wrong_count(node) or failing.get(node, "") or _changing_state(node)
        return (why,) if why else ()

    findings = list(found(model.graph, faults, not to_onnx))
    if to_onnx:
        inputs = _foreign(model.graph.inputs)
        findings += (Unsupported("Parameter", "graph", why) for why in inputs)
        findings += found(model.graph, lambda node: _foreign(node.outputs))
    if findings:
        raise UnsupportedError(str(context.target), findings)


def found(
    graph: Graph, faults: Callable[[Node], Iterable[str]], into_ifs: bool = True
) -> Iterator[Unsupported]:
    """The faults of the nodes of a graph and of its bodies. Paths to nodes are only made for a
    fault."""
    if any(True for node in graph.walk() for _ in faults(node)):
        for node, where in _located(graph, "graph", into_ifs):
            for why in faults(node):
                yield Unsupported(node.op, where, why)


def _located(graph: Graph, where: str, into_ifs: bool) -> Iterator[tuple[Node, str]]:
    """The nodes of a graph, and of the bodies in it, with the paths to them."""
    for node in graph.nodes:
        here = f"{where} / {node!r}"
        yield node, here
        if node.bodies and (into_ifs or node.op != "If"):
            for role, body in node.roles():
                yield from _located(body.graph, f"{here} / {role}", into_ifs)


def _foreign(values: Iterable[Value]) -> list[str]:
    """The types of values that ONNX lacks."""
    elements = [value.element for value in values]
    return [f"ONNX has no element type {e}" for e in elements if e is not None and e.onnx is None]


def _negative_padding(node: Node) -> str:
    """The padding of a window that is below 0, which ONNX does not allow; "" if there is none."""
    for name in ("output_padding", "pads"):
        numbers = node.attributes.get(name) or (0,)
        if min(numbers) < 0:
            return f"its {name} are {list(numbers)}; ONNX has none below 0"
    return ""


def _changing_state(node: Node) -> str:
    """The state of a Loop whose element type changes; "" if there is none."""
    for body in node.bodies if node.op == "Loop" else ():
        for value, port in body.entries():
            if not isinstance(port, Carried):
                continue
            back = body.exit_of(port)[0]
            types = {each.element for each in (value, back)} - {None}
            if len(types) > 1:
                return f"its state {value.element} gets {back.element} back"
    return ""
