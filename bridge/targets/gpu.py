"""What OpenVINO's GPU plugin computes wrongly, or not at all, however it is written.

Measured on an emulated device (`tests/gpu/`): see the facts in `docs/devices.md`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from bridge.neutral.graph import Node, Value, producer_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried
from bridge.neutral.types import is_static
from bridge.operators.control.loop_builder import is_positive
from bridge.quirks.loops.gpu.kinds import has_form, is_counted, known_trips
from bridge.vocabulary import has_trait
from bridge.vocabulary.elements import F4E2M1, F8E4M3FN, F8E5M2, F8E8M0, Element

_AXES = ((1, "axes"),)

CONSTANT: Mapping[str, Sequence[tuple[int, str]]] = {
    "Col2Im": ((1, "size of the image"), (2, "size of the kernel")),
    "CumSum": ((1, "axis"),),
    "Eye": ((0, "number of rows"), (1, "number of columns"), (2, "index of the diagonal")),
    "HardSigmoid": ((1, "alpha"), (2, "beta")),
    "IDFT": ((1, "axes"), (2, "sizes")),
    "IRDFT": ((1, "axes"), (2, "sizes")),
    "LRN": _AXES,
    "MVN": _AXES,
    "NormalizeL2": _AXES,
    "RDFT": ((1, "axes"), (2, "sizes")),
    "ReduceL1": _AXES,
    "ReduceL2": _AXES,
    "ReduceLogicalAnd": _AXES,
    "ReduceLogicalOr": _AXES,
    "ReduceMax": _AXES,
    "ReduceMean": _AXES,
    "ReduceMin": _AXES,
    "ReduceProd": _AXES,
    "ReduceSum": _AXES,
    "Roll": ((1, "shift"), (2, "axes")),
    "ScatterElements": ((3, "axis"),),
    "ScatterUpdate": ((3, "axis"),),
    "Selu": ((1, "alpha"), (2, "gamma")),
    "Swish": ((1, "beta"),),
    "Transpose": ((1, "order of the axes"),),
    "VariadicSplit": ((1, "axis"),),
    "ir::DFT": ((1, "axes"), (2, "sizes")),
    "ir::Multinomial": ((1, "number of samples"),),
    "ir::Split": ((1, "axis"),),
}
"""The inputs that the plugin reads when it compiles a model, by operator: their places and names.
It throws for other inputs than constants, or crashes (Col2Im, NormalizeL2)."""

MOST_AXES = 8
"""With more, even a Relu gives wrong numbers, without an error."""

USUAL_AXES = 6
"""The most axes of an operator that is not in OF_MANY_AXES."""

OF_MANY_AXES = frozenset({
    "Cast", "CastLike", "Concat", "Constant", "Identity", "If", "Loop", "Reshape", "Shape",
    "Softmax", "Squeeze", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators that take 7 and 8 axes, as reductions and those element by element do (but Where)."""

CONVERSIONS = frozenset({"Cast", "CastLike", "ir::Convert"})

_ELSEWHERE = "run it on the CPU, or this part elsewhere"

_HELP = "`values` or `input_shapes` for the inputs that decide it may help, else run it on the CPU"


def faults_of(node: Node, is_known: Callable[[Value], bool]) -> Iterator[str]:
    """Why the plugin cannot be trusted with a node. `is_known` says whether OpenVINO may know a
    value when it compiles the model."""
    if node.op == "Loop":
        yield from _of_loop(node)
    if has_trait(node.op, "fixed_weights"):
        yield from _of_convolution(node, is_known)
    if node.op in CONVERSIONS:
        yield from _of_conversion(node)
    if node.op == "DeformableConvolution" and not all(is_static(v.shape) for v in node.operands):
        yield f"OpenVINO's GPU plugin wants known sizes for it; {_HELP}"
    axes = max((value.rank or 0 for value in (*node.inputs, *node.outputs) if value), default=0)
    most = MOST_AXES if _takes_many_axes(node.op) else USUAL_AXES
    if axes > most:
        yield f"OpenVINO's GPU plugin takes at most {most} axes in this operator; {_ELSEWHERE}"
    for place, name in CONSTANT.get(node.op, ()):
        value = node.input(place)
        if value is not None and value.constant is None and known_of(value).array is None:
            yield f"OpenVINO's GPU plugin wants a constant for its {name}; {_HELP}"


def _of_conversion(node: Node) -> Iterator[str]:
    to, before = _target_type(node), producer_of(node.inputs[0], *CONVERSIONS)
    if to in (F4E2M1, F8E8M0):
        yield f"OpenVINO's GPU plugin reads {to}, but converts to it wrongly; {_ELSEWHERE}"
    few = _target_type(before) if before is not None else None
    if few in (F8E4M3FN, F8E5M2):
        yield (
            f"OpenVINO's GPU plugin leaves out a conversion to {few} that is converted "
            f"back, with its rounding; {_ELSEWHERE}"
        )


def _of_convolution(node: Node, is_known: Callable[[Value], bool]) -> Iterator[str]:
    data, weights = node.inputs[:2]
    if data is None or weights is None or is_static(data.shape) or is_known(weights):
        return
    yield (
        "OpenVINO's GPU plugin keeps its computed weights of the first inference where a size of "
        "its data is open; `input_shapes` for the inputs that decide it helps, else run it on the "
        "CPU"
    )


def _target_type(node: Node) -> Element | None:
    """The type that a conversion gives."""
    to = node.attributes.get("to")
    return to if isinstance(to, Element) else node.outputs[0].element


def _takes_many_axes(op: str) -> bool:
    by_element = has_trait(op, "by_element") and op != "Where"
    return by_element or op in OF_MANY_AXES or op.startswith("Reduce")


def _of_loop(node: Node) -> Iterator[str]:
    first = node.condition
    starts = first is None or is_positive(first)
    if is_counted(node) and starts and known_trips(node) is not None:
        return  # The plugin unrolls it.
    if has_form(node):
        states = [port.output for port in node.body.inputs if isinstance(port, Carried)]
        if len(states) > len({*states}):
            yield f"two of its states become one value, which the GPU plugin has wrong; {_HELP}"
        return
    yield (
        "the GPU plugin has it right in no form: it reads or stacks only some parts, or more than "
        "one at a time; a constant trip count of at most 64 helps (`values`), else use the CPU"
    )
