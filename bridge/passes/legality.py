"""What is about to be written is looked over, whoever made it: a file that no engine opens is worse
than a refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.inference.constraints import contradiction
from bridge.neutral.ports import Carried
from bridge.neutral.signature import impropriety
from bridge.neutral.types import STRING, is_static, size_of
from bridge.neutral.verify import verify
from bridge.passes.context import Context

ON_STRINGS = {
    "Concat", "Constant", "Flatten", "Gather", "Identity", "Reshape", "Shape", "Size", "Squeeze",
    "Transpose", "Unsqueeze",
}  # fmt: skip
"""What the CPU plugin does with strings."""


def check_legality(model: Model, context: Context) -> None:
    """Raises VerificationError where the graph breaks a rule of the neutral graph, and
    UnsupportedError with the nodes that the target's engines would refuse.

    What comes from the same format is what it was. In branches of Ifs only OpenVINO looks for nodes
    that cannot run, when it opens a model.
    """
    verify(model.graph)
    if model.format == context.target.format:
        return
    findings = list(_faults(model.graph, "graph", context.target.format))
    if context.target.format == "ir":
        findings += _too_large(model.graph, "graph")
        findings += _on_strings(model.graph, "graph")
    if context.target.format == "onnx":
        findings += _foreign(model.graph.inputs, "Parameter", "graph")
        findings += _foreign_results(model.graph, "graph")
    if findings:
        raise UnsupportedError(str(context.target), findings)


def _foreign(values: Sequence[Value], op: str, where: str) -> Iterator[Unsupported]:
    for value in values:
        if value.element is not None and value.element.onnx is None:
            yield Unsupported(op, where, f"ONNX has no element type {value.element}")


def _foreign_results(graph: Graph, where: str) -> Iterator[Unsupported]:
    """The nodes that give elements of a type that ONNX lacks."""
    for node in graph.nodes:
        here = f"{where} / {node!r}"
        yield from _foreign(node.outputs, node.op, here)
        for role, body in node.roles() if node.bodies else ():
            yield from _foreign_results(body.graph, f"{here} / {role}")


def _on_strings(graph: Graph, where: str) -> Iterator[Unsupported]:
    """The nodes that do more with strings than the CPU plugin does: it opens no model with most of
    them, and some end the process."""
    for node in graph.nodes:
        here = f"{where} / {node!r}"
        if not node.bodies and node.op not in ON_STRINGS:
            values = (*node.inputs, *node.outputs)
            if any(value is not None and value.element is STRING for value in values):
                yield Unsupported(node.op, here, "OpenVINO does not compute with strings")
        for role, body in node.roles() if node.bodies else ():
            yield from _on_strings(body.graph, f"{here} / {role}")


def _too_large(graph: Graph, where: str) -> Iterator[Unsupported]:
    """The nodes that OpenVINO computes when it opens a model, in memory that no machine has."""
    for node in graph.nodes:
        if all(value is None or value.constant is not None for value in node.inputs):
            for value in node.outputs:
                size = _bytes_of(value)
                if size > LARGEST:
                    why = f"its result of constants has {size} bytes"
                    yield Unsupported(node.op, f"{where} / {node!r}", why)
        for role, body in node.roles() if node.bodies else ():
            yield from _too_large(body.graph, f"{where} / {node!r} / {role}")


def _bytes_of(value: Value) -> int:
    """The bytes of a value; 0 where they are not known."""
    shape = value.shape
    if value.element is None or shape is None or not is_static(shape):
        return 0
    return value.element.nbytes(size_of(shape))


LARGEST = 1 << 33
"""Bytes that a computed constant may have."""


def _faults(graph: Graph, where: str, target: str) -> Iterator[Unsupported]:
    for node in graph.nodes:
        why = _negative_padding(node) if target == "onnx" else _open_weights(node)
        why = why or impropriety(node) or contradiction(node) or _changing_state(node)
        if why:
            yield Unsupported(node.op, f"{where} / {node!r}", why)
        if node.bodies and (node.op != "If" or target == "ir"):
            for role, body in node.roles():
                yield from _faults(body.graph, f"{where} / {node!r} / {role}", target)


def _negative_padding(node: Node) -> str:
    """Which padding of a window is below 0, which IR has and ONNX has not; "" where none is."""
    for name in ("output_padding", "pads"):
        numbers = node.attributes.get(name) or (0,)
        if min(numbers) < 0:
            return f"its {name} are {list(numbers)}; ONNX has none below 0"
    return ""


def _open_weights(node: Node) -> str:
    """What OpenVINO lacks of a convolution: it takes weights of fixed sizes alone."""
    weights = node.input(1) if node.op in CONVOLUTIONS else None
    if weights is None or is_static(weights.shape):
        return ""
    return (
        f"its weights {weights.type} have open sizes, which OpenVINO does not take; give the "
        "shapes of the inputs that decide them, with --input-shape"
    )


CONVOLUTIONS = {
    "Conv", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData",
}  # fmt: skip


def _changing_state(node: Node) -> str:
    """Which state of a Loop gets elements of another type back than it has; "" where none does."""
    for body in node.bodies if node.op == "Loop" else ():
        for value, port in body.entries():
            if not isinstance(port, Carried):
                continue
            back = body.exit_of(port)[0]
            types = {each.element for each in (value, back)} - {None}
            if len(types) > 1:
                return f"its state {value.element} gets {back.element} back"
    return ""
