"""Operators for which an engine has no kernel, or one with a fault of its own."""

import string
from collections.abc import Iterator
from typing import Any

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.signs import is_not_negative, replaces_negative
from bridge.neutral.types import I64, I64_MAX, is_static
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.quirk import GPU, Place, quirk

MODES = {"linear_onnx": "linear"}
"""Modes of Interpolate that have another name in Resize."""


@quirk(
    "Interpolate",
    symptom="An Interpolate along the first axes of a tensor of rank 4 or more fails or is wrong: "
    "only supports resize on spatial dimensions.",
    cost="a product with a matrix, or a Gather, for each axis",
    recorded=True,
)
def axes_of_interpolation(b: Builder, node: Node, place: Place) -> Result:
    """Each axis is interpolated alone, with explicit weights of the same mode."""
    from bridge.operators.spatial.resize import resize_by_axes

    x, wanted, axes = (node.input(i) for i in range(3))
    attributes = node.attributes
    assert x is not None and wanted is not None
    by_scales = attributes["shape_calculation_mode"] == "scales"
    if x.shape is None or _has_kernel(
        x, wanted, known_of(axes).ints, attributes["mode"], by_scales
    ):
        return None
    scales, sizes = (wanted, None) if by_scales else (None, wanted)
    inputs = [x, None, scales, sizes]
    mode = attributes["mode"]
    names = ("coordinate_transformation_mode", "nearest_mode")
    resize = Builder([]).node("Resize", inputs, 1, {
        "mode": MODES.get(mode, mode), "axes": known_of(axes).ints,
        "cubic_coeff_a": attributes["cube_coeff"], **{name: attributes[name] for name in names},
    })  # fmt: skip
    return resize_by_axes(b, resize, scales, sizes)


def _has_kernel(
    x: Value, wanted: Value, axes: tuple[int, ...] | None, mode: str, by_scales: bool
) -> bool:
    """Whether the plugin has a kernel for these axes.

    It has one for all axes up to rank 3, and for the axes behind the channels up to rank 5. It also
    has one for the axes of an image with channels last.
    """
    assert x.shape is not None
    rank = len(x.shape)
    if rank <= 3:
        return True
    if rank > 5:
        return False
    places = [axis % rank for axis in axes or range(rank)]
    if by_scales:
        known = known_of(wanted).array
        kept = [known is None or scale == 1 for scale in (places if known is None else known)]
    else:
        sizes = known_of(wanted).parts or (None,) * len(places)
        kept = [s is None or s == x.shape[a] for a, s in zip(places, sizes, strict=True)]
    resized = {axis for axis, same in zip(places, kept, strict=True) if not same}
    return not resized & {0, 1} or (rank == 4 and mode != "cubic" and resized <= {1, 2})


# The CPU plugin has no kernel. OpenVINO decomposes the operator in the outermost graph only. It
# crashes there, too, if some Selects read the output. This depends on the other inputs of the
# Select, and a file does not show it.
@quirk(
    "GroupNormalization",
    uses=True,
    model="GroupNorm in a branch",
    symptom="GroupNormalization in the body of an If or a Loop does not compile: evaluate() is not "
    "implemented. Nor does one of a matrix, if the size of an input is open. OpenVINO crashes "
    "when it compiles one whose output a Select reads, if other inputs of the Select are computed.",
    cost="six operators for one",
)
def group_normalization(b: Builder, node: Node, place: Place) -> Result:
    """This is the definition in the standard. Each group minus its mean is divided by its
    deviation, multiplied by the scale, and added to the bias.
    """
    data, scale, bias = node.inputs
    is_selected = any(user.op == "Where" for user in place.users(node.outputs[0]))
    if data is None or data.rank is None:
        return None
    is_open = not all(is_static(value.shape) for value in node.operands)
    if not (place.body or is_selected or (data.rank == 2 and is_open)):
        return None
    assert scale is not None and bias is not None
    grouped = b.reshape(data, 0, node.attributes["num_groups"], -1)
    eps = node.attributes["epsilon"]
    settings = {"eps": eps, "eps_mode": "INSIDE_SQRT", "normalize_variance": True}
    even = b.op("Reshape", b.op("MVN", grouped, [2], **settings), b.op("Shape", data))
    return even * _along_channels(b, scale, data.rank) + _along_channels(b, bias, data.rank)


def _along_channels(b: Builder, vector: Value, rank: int) -> Value:
    return b.reshape(vector, 1, -1, *(1,) * (rank - 2))


@quirk(
    "Gather",
    symptom="A Gather with `batch_dims` reads other memory, or crashes, if all axes before the one "
    "along which it gathers have the known size 1.",
    cost="a Squeeze of the indices, which copies nothing",
)
def gather_from_one_batch(b: Builder, node: Node, place: Place) -> Result:
    """Without `batch_dims`, this takes the same elements."""
    (data, indices, axis), count = node.inputs, node.attributes["batch_dims"]
    if not count or data is None or not data.rank:
        return None
    before = (known_axes(axis, data.rank) or (0,))[0]
    if set(data.dims[:before]) != {1}:
        return None
    return b.op("Gather", data, b.op("Squeeze", indices, [*range(count)]), axis)


@quirk(
    "GatherElements",
    "GatherND",
    until="2025.2",
    releases="2024.0 to 2025.2",
    symptom="GatherElements and GatherND with negative indices read memory in front of the data.",
    cost="an Add, a Less and a Select before each operator. Only for those releases.",
)
def gather_from_the_end(b: Builder, node: Node, place: Place) -> Result:
    """An index below 0 selects the same element as this index plus the size of its axis."""
    data, indices = node.inputs
    assert isinstance(data, Value) and isinstance(indices, Value)
    axes = _axes_of_indices(node, data, indices)
    made = indices.producer
    if axes is None or is_not_negative(indices) or (made is not None and replaces_negative(made)):
        return None
    counted = b.from_the_front(indices, b.sizes(data, *axes))
    return b.op(node.op, data, counted, **node.attributes)


def _axes_of_indices(node: Node, data: Value, indices: Value) -> range | None:
    """The axes of the indices; None if they are not known."""
    if data.rank is None or not indices.rank:
        return None
    if node.op == "GatherElements":
        axis = node.attributes["axis"] % data.rank
        return range(axis, axis + 1)
    first, count = node.attributes["batch_dims"], indices.dims[-1]
    return range(first, first + count) if isinstance(count, int) else None


@gather_from_the_end.guesses("GatherElements", "GatherND")
def _gathers(b: Builder, node: Node) -> Iterator[Value]:
    """The operator on the indices before the addition."""
    data, counted = node.inputs
    made = counted.producer if counted is not None else None
    if made is not None and made.op == "Where":
        yield b.op(node.op, data, made.inputs[2], **node.attributes)


# A pass of OpenVINO: StridesOptimization.
@quirk(
    "Conv",
    symptom="A Conv of one place, with strides and pads, behind arithmetic or another Conv, has "
    "its strides in front of the pads: it has another shape, and other elements.",
    cost="a Pad and a strided Slice",
)
def strides_behind_pads(b: Builder, node: Node, place: Place) -> Result:
    """The pads, then the elements that the strides take, then a Conv of all of them."""
    (x, weights), given = node.inputs, node.attributes
    assert x is not None and weights is not None
    strides, pads, count = given["strides"], given["pads"], len(given["strides"])
    if set(weights.dims[2:]) != {1} or max(strides) == 1 or not any(pads) or x.rank is None:
        return None
    padded = b.op("Pad", x, [0, 0, *pads[:count], 0, 0, *pads[count:]])
    axes = [*range(2, count + 2)]
    taken = b.op("Slice", padded, [0] * count, [I64_MAX] * count, axes, [*strides])
    plain = {**given, "strides": (1,) * count, "pads": (0,) * 2 * count}
    return b.op("Conv", taken, weights, **plain)


@quirk(
    "AvgPool",
    "MaxPool",
    engines=(GPU,),
    symptom="With sizes that are rounded up, a MaxPool has a window more, which starts in the "
    "padding. With dilations, the mean of the last window of an AvgPool is too small: it is "
    "divided by the size of the window, as if zeros were there.",
    cost="none",
)
def window_beyond_input(b: Builder, node: Node, place: Place) -> Result:
    """Without padding, there are no elements of it to count. With the padding that the last window
    needs, there are as many windows, at the same places.
    """
    changes = (_of_mean if node.op == "AvgPool" else _of_maximum)(node)
    if not changes:
        return None
    attributes = {**node.attributes, **changes}
    return b.node(node.op, node.inputs, len(node.outputs), attributes, extras=node.extras).outputs


def _of_mean(node: Node) -> dict[str, Any]:
    """The attributes of a mean that counts elements of the padding, without padding."""
    given = node.attributes
    is_right = given["exclude_pad"] or given["rounding_type"] == "floor" or any(given["pads"])
    is_right |= all(step == 1 for step in given.get("dilations") or ())
    return {} if is_right or given["auto_pad"] not in ("NOTSET", "VALID") else {"exclude_pad": True}


def _of_maximum(node: Node) -> dict[str, Any]:
    """The attributes of a maximum of known sizes that leaves out a window."""
    given, data = node.attributes, node.operand(0)
    if given["rounding_type"] != "ceil_torch" or given["auto_pad"] != "NOTSET":
        return {}
    count = len(given["kernel_shape"])
    sizes = () if data.shape is None else data.shape[-count:]
    dilations = given.get("dilations") or (1,) * count
    ends, is_wrong = [], False
    rows = (sizes, given["kernel_shape"], given["strides"], dilations, given["pads"][:count])
    for axis, (size, kernel, stride, dilation, before) in enumerate(zip(*rows, strict=False)):
        if not isinstance(size, int):
            return {}
        window = dilation * (kernel - 1) + 1
        rest = size + before + given["pads"][count + axis] - window
        last = -(-rest // stride)  # The place of the last window, if all count.
        if last * stride >= size + before:
            last, is_wrong = last - 1, True
        ends.append(max(last * stride + window - size - before, 0))
    pads = (*given["pads"][:count], *ends)
    return {"pads": pads, "rounding_type": "floor"} if is_wrong else {}


@quirk(
    "NormalizeL2",
    engines=(GPU,),
    symptom="NormalizeL2 with eps_mode max adds epsilon to the sum of squares.",
    cost="a Multiply, a ReduceSum, a Maximum, a Sqrt and a Divide; they stay on the way back to "
    "ONNX",
)
def bound_of_norm(b: Builder, node: Node, place: Place) -> Result:
    """This is the operator's definition."""
    data, axes = node.inputs
    if data is None or axes is None or node.attributes["eps_mode"] != "max":
        return None
    squares = b.op("ReduceSum", data * data, axes, keepdims=True, noop_with_empty_axes=True)
    return data / b.op("Sqrt", b.max(squares, b.like(node.attributes["eps"], squares)))


@quirk(
    "HardSigmoid",
    recorded=True,
    symptom="A HardSigmoid whose alpha or beta is 0 computes with 0.2 or 0.5.",
    cost="a Multiply, an Add and a Clamp for one operator",
)
def zeros_of_hard_sigmoid(b: Builder, node: Node, place: Place) -> Result:
    """This is the operator's definition."""
    x, alpha, beta = node.operands
    known = [known_of(value).reals for value in (alpha, beta)]
    if all(number is None or number.all() for number in known):
        return None
    return b.op("Clip", x * alpha + beta, b.like(0.0, x), b.like(1.0, x))


# The kernel of a Pad reads the pad of a second axis behind the pads.
@quirk(
    "Einsum",
    "FakeQuantize",
    "GatherElements",
    "ScatterElements",
    "ScatterND",
    "ir::Pad",
    recorded=True,
    engines=(GPU,),
    symptom='Einsum "i,i" gives a number that is not the sum of products. A FakeQuantize of a '
    "vector with limits for each element has the limits of the first one for all; OpenVINO makes "
    "such limits of arithmetic with a constant vector around it. A Pad of a vector by computed "
    "pads moves its elements by what lies in memory behind the pads. ScatterElementsUpdate, "
    "ScatterNDUpdate and GatherElements of a constant vector take wrong places.",
    cost="reshapes, which copy nothing, and two Concats for pads",
)
def kernel_of_vectors(b: Builder, node: Node, place: Place) -> Result:
    """A vector has the elements of a matrix of one row, or of one column. The added axis gets no
    pads, and is removed again.
    """
    inputs, data, second, axis = [*node.inputs], node.operand(0), node.input(1), 1
    attributes = {**node.attributes}
    if node.op == "Einsum":
        return _vector_of_einsum(b, node, data)
    if data.rank != 1 or second is None:
        return None
    if node.op == "FakeQuantize":
        axis = 0
        if data.dims[0] == 1 or any(v is None or v.rank not in (0, 1) for v in inputs[1:]):
            return None
    elif node.op == "ir::Pad":
        if is_known(second, place):
            return None
        none = b.constant([0], I64)
        inputs[1:3] = [b.concat(0, v, b.cast(none, v.element)) for v in node.operands[1:3]]
    else:
        if not is_known(data, place) or known_of(second).array is not None or second.rank is None:
            return None
        inputs[1] = second if node.op == "ScatterND" else b.unsqueeze(second, 1)
        updates, at = node.input(2), second.rank - 1 if node.op == "ScatterND" else 1
        inputs[2:3] = [] if updates is None else [b.unsqueeze(updates, at)]
        inputs[3:] = [b.constant(0) for _ in inputs[3:]]  # The axis, which may be -1.
        attributes |= {"axis": 0} if "axis" in attributes else {}
    inputs[0] = b.unsqueeze(data, axis)
    made = b.node(node.op, inputs, 1, attributes, extras=node.extras)
    return b.squeeze(made.outputs[0], axis)


def _vector_of_einsum(b: Builder, node: Node, first: Value) -> Value | None:
    """The sum of an Einsum whose result is a scalar."""
    equation = node.attributes["equation"].replace(" ", "")
    if node.outputs[0].rank != 0 or "." in equation:
        return None
    axis = next(letter for letter in string.ascii_letters if letter not in equation)
    operands = [b.unsqueeze(first, 0), *node.inputs[1:]]
    longer = f"{axis}{equation.partition('->')[0]}->{axis}"
    summed = b.node("Einsum", operands, 1, {"equation": longer}, extras=node.extras)
    return b.squeeze(summed.outputs[0], 0)


@quirk(
    "Range",
    engines=(GPU,),
    model="test_range_int32_type_negative_delta",
    symptom='A model with Range of operator set 1 does not compile ("not supported").',
    cost="none: the layer is one of operator set 4",
)
def range_without_type(b: Builder, node: Node, place: Place) -> Result:
    """The element type is the type of its inputs."""
    start = node.inputs[0]
    if node.attributes.get("output_type") is not None or start is None or start.element is None:
        return None
    attributes = {**node.attributes, "output_type": start.element}
    return b.node("Range", node.inputs, 1, attributes, extras=node.extras).outputs
