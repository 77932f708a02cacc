"""What no node may be: attributes and inputs that its operator does not have, and shapes that do
not go together. Engines refuse to open a model that has such a node, or fail when they come to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from bridge.neutral.attributes import fault_of
from bridge.neutral.builder import integers, values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Carried, Condition, Sliced, Stacked
from bridge.neutral.types import ANY, Shape, differ, format_shape, is_static, size_of
from bridge.operators import nn_validity as nn
from bridge.operators.window_validity import CONVOLUTION, POOLING, window
from bridge.vocabulary import has_trait, operator


def impropriety(node: Node) -> str:
    """Which attribute, input or output of a node its operator does not have, or lacks; "" where
    they are in order."""
    row = operator(node.op)
    if row is None or node.bodies or node.op == "Constant":
        return ""
    if fault := fault_of(node.op, node.attributes):
        return fault
    for kind, given, declared in (
        ("input", node.inputs, row.inputs),
        ("output", node.outputs, row.outputs),
    ):
        if len(given) > len(declared) and not (declared and declared[-1].endswith("*")):
            return f"it has {len(given)} {kind}s, and may have {len(declared)}"
    if len(node.inputs) < len(row.inputs) or None in node.inputs:
        for index, name in enumerate(row.inputs):
            if node.input(index) is None and name[-1] not in "?*":
                return f"it lacks its input {name}"
    if row.inputs and row.inputs[-1].endswith("*") and None in node.inputs[len(row.inputs) - 1 :]:
        return "it lacks one of its inputs"
    one_of = ONE_OF.get(node.op, ())
    if one_of and all(node.input(index) is None for index in one_of):
        return f"it lacks its input {' or '.join(row.inputs[i].rstrip('?') for i in one_of)}"
    return ""


ONE_OF = {"Resize": (2, 3)}
"""Inputs of which each may be absent, but not all."""


def contradiction(node: Node) -> str:
    """Why the known shapes of a node's inputs do not go together; "" where they may."""
    for check in _checks(node.op):
        for why in check(node):
            return why
    return ""


Check = Callable[[Node], Iterator[str]]


@cache
def _checks(op: str) -> tuple[Check, ...]:
    return (_elementwise,) if has_trait(op, "broadcasts") else CHECKS.get(op, ())


def _axis_attribute(name: str, more: int = 0) -> Check:
    """The check of an attribute that is an axis, or several, of input 0; `more` axes may be named
    than it has."""

    def check(node: Node) -> Iterator[str]:
        given = node.attributes.get(name)
        axes = given if isinstance(given, tuple) else () if given is None else (given,)
        yield from _outside(node.input(0), axes, more)

    return check


def _axis_input(index: int) -> Check:
    """The check of an input that holds axes of input 0, where it is known."""

    def check(node: Node) -> Iterator[str]:
        yield from _integral(node.input(index))
        yield from _outside(node.input(0), integers(node.input(index)) or ())

    return check


def _integral(value: Value | None) -> Iterator[str]:
    """What an input that holds axes is instead of integers."""
    if value is not None and value.element is not None and value.element.kind not in _INTEGERS:
        yield f"its axes are {value.element}"


_INTEGERS = ("int", "uint")


def _outside(value: Value | None, axes: Sequence[int], more: int = 0) -> Iterator[str]:
    shape = _shape(value)
    if shape is None:
        return
    rank = max(len(shape), 1) + more  # a scalar's axis may be called 0
    for axis in axes:
        if not -rank <= axis < rank:
            yield f"{format_shape(shape)} has no axis {axis}"


def _rank(least: int, most: int = 1 << 30, index: int = 0) -> Check:
    """The check of the rank of an input."""
    wanted = str(least) if least == most else f"{least} or {'more' if most > 3 else most}"

    def check(node: Node) -> Iterator[str]:
        shape = _shape(node.input(index))
        if shape is not None and not least <= len(shape) <= most:
            yield f"its input {index} is {format_shape(shape)}, not of rank {wanted}"

    return check


def _ranks(*wanted: int) -> tuple[Check, ...]:
    """The checks of the ranks of the first inputs."""
    return tuple(_rank(rank, rank, index) for index, rank in enumerate(wanted))


def _not_negative(index: int) -> Check:
    """The check of an input that holds sizes or repeats."""

    def check(node: Node) -> Iterator[str]:
        known = integers(node.input(index))
        if known is not None and min(known, default=0) < 0:
            yield f"its input {index} is {list(known)}"

    return check


def _frames(node: Node) -> Iterator[str]:
    """The step between frames and their length, which is the window's too (ONNX, STFT)."""
    for index, what in ((1, "step"), (3, "frame length")):
        known = integers(node.input(index))
        if known and min(known) < 1:
            yield f"its {what} is {known[0]}"
    window, length = _shape(node.input(2)), integers(node.input(3))
    if window and length and differ(window[0], length[0]):
        yield f"its window is {format_shape(window)}, and its frame length {length[0]}"


def _step(node: Node) -> Iterator[str]:
    step = values_of(node.input(2))
    if step is not None and step.size == 1 and (not step.all() or not np.isfinite(step).all()):
        yield f"its step is {step.item()}"


def _interval(node: Node) -> Iterator[str]:
    """The numbers drawn lie between two others (IR, RandomUniform)."""
    low, high = values_of(node.input(1)), values_of(node.input(2))
    if low is None or high is None or low.size != 1 or high.size != 1:
        return
    if not low.item() < high.item():
        yield f"nothing lies between {low.item()} and {high.item()}"


def _interpolation(node: Node) -> Iterator[str]:
    """A factor or a size for each axis (ONNX, Resize; IR, Interpolate-11)."""
    shape = _shape(node.input(0))
    wanted: tuple[int, ...]
    if node.op == "Resize":
        axes, wanted, factors = node.attributes.get("axes"), (2, 3), node.input(2)
        if all(node.input(index) is None or _shape(node.input(index)) == (0,) for index in wanted):
            yield "it has neither scales nor sizes"
    else:
        axes, wanted, factors = integers(node.input(2)), (1,), node.input(1)
        if node.attributes.get("shape_calculation_mode") == "sizes":
            factors = None
    count = len(axes) if axes is not None else None if shape is None else len(shape)
    if axes and shape and len({axis % len(shape) for axis in axes}) < len(axes):
        yield f"its axes {list(axes)} name one of {format_shape(shape)} twice"
    for index in wanted:
        length = _shape(node.input(index))
        if length in (None, (), (0,)) or count is None:
            continue  # An input without elements is one that is not given.
        if length and differ(length[0], count):
            yield f"its input {index} is {format_shape(length)}, for {count} axes"
    numbers = values_of(factors)
    if numbers is not None and not ((numbers > 0) & np.isfinite(numbers)).all():
        yield f"its scales are {numbers.tolist()}"


def _single(*indices: int) -> Check:
    """The check that inputs have one element."""

    def check(node: Node) -> Iterator[str]:
        for index in indices:
            shape = _shape(node.input(index))
            if shape is not None and any(isinstance(dim, int) and dim != 1 for dim in shape):
                yield f"its input {index} is one number, not {format_shape(shape)}"

    return check


def _elementwise(node: Node) -> Iterator[str]:
    """Multidirectional broadcasting (ONNX, Broadcasting) of one type."""
    if len({_shape(value) for value in node.inputs}) == 1:
        return
    sizes: dict[int, int] = {}
    for value in node.inputs:
        for place, dim in enumerate(reversed(_shape(value) or ())):
            if isinstance(dim, int) and dim != 1 and sizes.setdefault(place, dim) != dim:
                yield f"{_shapes(node)} cannot be broadcast together"


def _expand(node: Node) -> Iterator[str]:
    """The shape asked for is broadcast with that of the data (ONNX, Expand)."""
    shape, target = _shape(node.input(0)), integers(node.input(1))
    for have, wanted in zip(reversed(shape or ()), reversed(target or ()), strict=False):
        if wanted != 1 and have != 1 and differ(have, wanted):
            yield f"{format_shape(shape)} cannot take the shape {list(target or ())}"
            return


def _matmul(node: Node) -> Iterator[str]:
    a, b = (_shape(value) for value in node.inputs[:2])
    if not a or not b:
        return
    columns = a[max(len(a) - 2, 0) if node.attributes.get("transpose_a") else -1]
    rows = b[-1 if node.attributes.get("transpose_b") else max(len(b) - 2, 0)]
    if differ(columns, rows):
        yield f"{_shapes(node)} cannot be multiplied"


def _gemm(node: Node) -> Iterator[str]:
    a, b = (_shape(value) for value in node.inputs[:2])
    if a is None or b is None:
        return
    if len(a) != 2 or len(b) != 2:
        yield f"{_shapes(node)} are no matrices"
    else:
        columns = a[0 if node.attributes["transA"] else 1]
        rows = b[1 if node.attributes["transB"] else 0]
        if differ(columns, rows):
            yield f"{_shapes(node)} cannot be multiplied"


def _reshape(node: Node) -> Iterator[str]:
    shape, target = _shape(node.inputs[0]), integers(node.inputs[1])
    if target is not None and (min(target, default=0) < -1 or target.count(-1) > 1):
        yield f"{list(target)} is no shape"
        return
    if shape is None or not is_static(shape) or target is None:
        return
    copies = not node.attributes["allowzero"]
    if copies and any(not size and place >= len(shape) for place, size in enumerate(target)):
        yield f"{format_shape(shape)} has no dimension to copy for each 0 of {list(target)}"
        return
    sizes = [shape[i] if copies and not size else size for i, size in enumerate(target)]
    given, wanted = size_of(shape), size_of([size for size in sizes if size >= 0])
    fits = (given % wanted == 0 if wanted else not given) if -1 in sizes else given == wanted
    if not fits:
        yield f"{format_shape(shape)} cannot take the shape {list(target)}"


def _transpose(node: Node) -> Iterator[str]:
    shape, order = _shape(node.inputs[0]), integers(node.input(1))
    if shape is None or not order:
        return
    if len(order) != len(shape):
        yield f"{format_shape(shape)} has no {len(order)} axes to exchange"
    elif sorted(order) != list(range(len(order))):
        yield f"{list(order)} is no order of the axes of {format_shape(shape)}"


def _concat(node: Node) -> Iterator[str]:
    shapes = [shape for value in node.inputs if (shape := _shape(value)) is not None]
    for shape in shapes[1:]:
        if len(shape) != len(shapes[0]):
            yield f"{_shapes(node)} differ in rank"
            return
        axis = node.attributes["axis"] % max(len(shape), 1)
        for place, (one, other) in enumerate(zip(shapes[0], shape, strict=True)):
            if place != axis and differ(one, other):
                yield f"{_shapes(node)} differ along axis {place}"


def _indexed_elements(node: Node) -> Iterator[str]:
    data, indices = (_shape(value) for value in node.inputs[:2])
    if data is not None and indices is not None and len(data) != len(indices):
        yield f"{_shapes(node)} differ in rank"


def _fewer(node: Node) -> Iterator[str]:
    """No more indices along another axis than there are elements (ONNX, GatherElements)."""
    data, indices = (_shape(value) for value in node.inputs[:2])
    if data is None or indices is None or len(data) != len(indices):
        return
    others = set(range(len(data))) - {node.attributes["axis"] % max(len(data), 1)}
    for axis in sorted(others):
        there, asked = data[axis], indices[axis]
        if isinstance(there, int) and isinstance(asked, int) and asked > there:
            yield f"{format_shape(indices)} are more indices than {format_shape(data)} has elements"


def _updates(node: Node) -> Iterator[str]:
    """An update for each index (ONNX, ScatterElements)."""
    indices, updates = (_shape(node.input(index)) for index in (1, 2))
    if indices is None or updates is None:
        return
    if len(indices) != len(updates) or any(map(differ, indices, updates)):
        yield f"{format_shape(updates)} are no updates for indices {format_shape(indices)}"


def _places(node: Node) -> Iterator[str]:
    """Indices [..., k] of places in the first k axes, and for each place what lies there (ONNX,
    GatherND and ScatterND)."""
    data, indices, updates = (_shape(node.input(index)) for index in range(3))
    if data is None or indices is None:
        return
    deep = indices[-1] if indices else 0
    batch = node.attributes.get("batch_dims", 0)
    if not isinstance(deep, int):
        return
    if not 1 <= deep <= len(data) - batch:
        yield f"{format_shape(indices)} are no indices of places in {format_shape(data)}"
    elif updates is not None and node.op == "ScatterND":
        wanted = (*indices[:-1], *data[deep:])
        if len(wanted) != len(updates) or any(map(differ, wanted, updates)):
            yield f"{format_shape(updates)} are no updates, which are {format_shape(wanted)}"


def _batches(node: Node) -> Iterator[str]:
    """The first axes of data and indices go together (ONNX, GatherND; IR, Gather)."""
    data, indices = _shape(node.input(0)), _shape(node.input(1))
    if indices is None:
        return
    # Behind them GatherND has the axis that holds the places.
    most = len(indices) - (node.op == "GatherND")
    batch = node.attributes.get("batch_dims", 0)
    least = -len(indices) if node.op == "Gather" else 0
    if not least <= batch <= most:
        yield f"{format_shape(indices)} has no {batch} batch dimensions"
        return
    batch += len(indices) if batch < 0 else 0
    if data is None:
        return
    if batch > len(data) or any(map(differ, data[:batch], indices[:batch])):
        yield f"{format_shape(data)} and {format_shape(indices)} differ in batch dimensions"
    axes = integers(node.input(2)) if node.op == "Gather" else None
    if axes and (axes[0] % len(data) if data else 0) < batch:
        yield f"its axis {axes[0]} is one of its {batch} batch dimensions"


def _einsum(node: Node) -> Iterator[str]:
    """A term of the equation for each input, with a label for each axis that no ellipsis covers;
    the result has no further ones (ONNX, Einsum)."""
    equation = node.attributes["equation"].replace(" ", "")
    left, _, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(node.inputs):
        yield f'"{equation}" is for {len(terms)} inputs, and it has {len(node.inputs)}'
        return
    sizes: dict[str, int] = {}
    for term, value in zip(terms, node.inputs, strict=True):
        shape = _shape(value)
        before, ellipsis, after = term.partition("...")
        labels = before + after
        if shape is None:
            continue
        if len(labels) > len(shape) or (not ellipsis and len(labels) < len(shape)):
            yield f'"{term}" are no axes of {format_shape(shape)}'
            return
        dims = (*shape[: len(before)], *shape[len(shape) - len(after) :])
        for label, dim in zip(labels, dims, strict=True):
            if isinstance(dim, int) and dim != 1 and sizes.setdefault(label, dim) != dim:
                yield f"{_shapes(node)} differ in the size of {label}"
    if further := set(right) - set(left):
        yield f'"{equation}" makes {", ".join(sorted(further))} of nothing'


def _reversal(node: Node) -> Iterator[str]:
    """The lengths are those of the batch axis, which is not the time axis (ONNX,
    ReverseSequence)."""
    shape, lengths = _shape(node.input(0)), _shape(node.input(1))
    if shape is None:
        return
    batch, time = node.attributes["batch_axis"], node.attributes["time_axis"]
    if batch % len(shape) == time % len(shape):
        yield f"its batch and its time are axis {batch} of {format_shape(shape)}"
    if lengths is not None and differ(lengths[0], shape[batch]):
        yield f"{format_shape(lengths)} are no lengths for axis {batch} of {format_shape(shape)}"


def _grid(node: Node) -> Iterator[str]:
    """For each batch a point in space at each place (ONNX, GridSample)."""
    x, grid = _shape(node.input(0)), _shape(node.input(1))
    if x is None or grid is None:
        return
    if len(x) != len(grid) or differ(x[0], grid[0]) or differ(grid[-1], len(x) - 2):
        yield f"{format_shape(grid)} are no places in {format_shape(x)}"


def _squeeze(node: Node) -> Iterator[str]:
    yield from _integral(node.input(1))
    shape, axes = _shape(node.inputs[0]), integers(node.input(1))
    if shape is None or axes is None or node.attributes["allow_axis_skip"]:
        return
    for axis in axes:
        if -len(shape) <= axis < len(shape) and differ(shape[axis], 1):
            yield f"axis {axis} of {format_shape(shape)} is not 1"


def _unsqueeze(node: Node) -> Iterator[str]:
    yield from _integral(node.input(1))
    shape, axes = _shape(node.inputs[0]), integers(node.input(1))
    if shape is None or axes is None:
        return
    rank = len(shape) + len(axes)
    for axis in axes:
        if not -rank <= axis < rank:
            yield f"{format_shape(shape)} with {len(axes)} further axes has no axis {axis}"
    if len({axis % rank for axis in axes}) < len(axes):
        yield f"its axes {list(axes)} name one of {rank} twice"


def _recurrent(node: Node) -> Iterator[str]:
    """X [time, batch, input], W and R [directions, gates * hidden, ...], B [directions, ...],
    lengths [batch], initial states [directions, batch, hidden], P [directions, 3 * hidden] (ONNX,
    LSTM); in layout 1 the batch comes first."""
    hidden = node.attributes.get("hidden_size") or 0
    if hidden < 0:
        yield f"its hidden size is {hidden}"
    shapes = [_shape(value) for value in node.inputs]
    for index, (shape, rank) in enumerate(zip(shapes, (3, 3, 3, 2, 1, 3, 3, 2), strict=False)):
        if shape is not None and len(shape) != rank:
            yield f"its input {index} is {format_shape(shape)}, not of rank {rank}"
            return
    directions = 2 if node.attributes.get("direction") == "bidirectional" else 1
    batch_first = node.attributes.get("layout", 0) == 1
    for index, place in ((1, 0), (2, 0), (3, 0), (5, batch_first), (6, batch_first), (7, 0)):
        shape = shapes[index] if index < len(shapes) else None
        if shape is not None and differ(shape[place], directions):
            yield f"its input {index} is {format_shape(shape)}, for {directions} directions"
    x, w, r, b = (*shapes, None)[:4]
    if x is not None and w is not None and differ(x[2], w[2]):
        yield f"{_shapes(node)} differ in input size"
    if (
        w is not None
        and r is not None
        and (differ(r[1], w[1]) or (hidden and differ(r[2], hidden)))
    ):
        yield f"{_shapes(node)} differ in hidden size"
    if w is not None and b is not None and isinstance(w[1], int) and differ(b[1], 2 * w[1]):
        yield f"{_shapes(node)} differ in the size of the bias"
    yield from _states(shapes, batch_first)


def _states(shapes: list[Shape], batch_first: bool) -> Iterator[str]:
    """The batch and the size of the initial states of a recurrent layer, and the lengths."""
    x, r = shapes[0], shapes[2] if len(shapes) > 2 else None
    batch = ANY if x is None else x[0 if batch_first else 1]
    size = ANY if r is None else r[2]
    for index, place in ((4, 0), (5, not batch_first), (6, not batch_first)):
        shape = shapes[index] if index < len(shapes) else None
        if shape is None:
            continue
        if differ(shape[place], batch):
            yield f"its input {index} is {format_shape(shape)}, for a batch of {batch}"
        if index > 4 and differ(shape[2], size):
            yield f"its input {index} is {format_shape(shape)}, for a hidden size of {size}"


def _top(node: Node) -> Iterator[str]:
    shape, count = _shape(node.inputs[0]), integers(node.input(1))
    axis = node.attributes.get("axis", -1)
    if shape and count and len(count) == 1 and -len(shape) <= axis < len(shape):
        size = shape[axis]
        if count[0] < 0 or (isinstance(size, int) and count[0] > size):
            yield f"axis {axis} of {format_shape(shape)} has no {count[0]} elements"


def _slice(node: Node) -> Iterator[str]:
    lengths = set()
    for value in node.inputs[1:]:
        shape = _shape(value)
        if shape is not None and len(shape) != 1:
            yield f"starts, ends, axes and steps are vectors, not {format_shape(shape)}"
        lengths |= {dim for dim in shape or () if isinstance(dim, int)}
    if len(lengths) > 1:
        yield f"its starts, ends, axes and steps are {_shapes(node)}, of several lengths"


def _quantization(node: Node) -> Iterator[str]:
    """A scale is one number, one for each place along an axis, or one for each block."""
    x, scale = (_shape(value) for value in node.inputs[:2])
    if x is None or scale is None:
        return
    axis, block = node.attributes["axis"], node.attributes.get("block_size", 0)
    if block and scale and len(scale) != len(x):
        yield f"{format_shape(scale)} are no scales of blocks of {format_shape(x)}"
    zero = _shape(node.input(2))
    if zero and zero != (1,) and (len(zero) != len(scale) or any(map(differ, zero, scale))):
        yield f"{format_shape(zero)} are no zero points for scales {format_shape(scale)}"
    if not is_static(scale) or size_of(scale) == 1:
        return
    if len(scale) == 1 and not block:
        if not -len(x) <= axis < len(x):
            yield f"{format_shape(x)} has no axis {axis}"
        elif differ(x[axis], scale[0]):
            yield f"axis {axis} of {format_shape(x)} has other scales, {format_shape(scale)}"
    elif not block:
        pairs = zip(reversed(x), reversed(scale), strict=False)
        if len(scale) > len(x) or any(differ(a, b) and b != 1 for a, b in pairs):
            yield f"{_shapes(node)} cannot be broadcast together"


def _split(node: Node) -> Iterator[str]:
    shape, lengths = _shape(node.inputs[0]), integers(node.input(1))
    axis = node.attributes["axis"]
    given = _shape(node.input(1))
    if given and differ(given[0], len(node.outputs)):
        yield f"it has {len(node.outputs)} outputs for {given[0]} parts"
        return
    if shape is None or lengths is None or not -len(shape) <= axis < len(shape):
        return
    if differ(shape[axis], sum(lengths)) or min(lengths, default=0) < 0:
        yield f"axis {axis} of {format_shape(shape)} has no parts of {list(lengths)}"


def _lengths(node: Node) -> Iterator[str]:
    """The size of each part, of which one may be -1, what is left (IR, VariadicSplit)."""
    lengths = integers(node.input(2))
    if lengths is None:
        return
    if min(lengths, default=0) < -1 or lengths.count(-1) > 1 or len(lengths) < len(node.outputs):
        yield f"{list(lengths)} are no lengths of {len(node.outputs)} parts"


def _pad_ends(node: Node) -> Iterator[str]:
    """Two vectors of pads, one for each axis (IR, Pad-12)."""
    shape = _shape(node.input(0))
    for index in (1, 2):
        pads = _shape(node.input(index))
        if shape is not None and pads and differ(pads[0], len(shape)):
            yield f"its input {index} is {format_shape(pads)}, for {len(shape)} axes"


def _pad(node: Node) -> Iterator[str]:
    shape, pads = _shape(node.inputs[0]), _shape(node.input(1))
    axes = _shape(node.input(3))
    if shape is None or not pads or (node.input(3) is not None and not axes):
        return
    count = axes[0] if axes else len(shape)
    if isinstance(count, int) and differ(pads[0], 2 * count):
        yield f"it has {pads[0]} pads for {count} axes of {format_shape(shape)}"
        return
    known, axes_ = integers(node.input(1)), integers(node.input(3))
    if known is None or (axes and axes_ is None):
        return
    places = [axis % len(shape) for axis in axes_] if axes_ else range(len(shape))
    for place, begin, end in zip(places, known, known[len(known) // 2 :], strict=False):
        size = shape[place]
        if isinstance(size, int) and size + begin + end < 0:
            yield f"axis {place} of {format_shape(shape)} is padded by {begin} and {end}"


def _one_condition(node: Node) -> Iterator[str]:
    shape = _shape(node.condition)
    if shape is not None and any(isinstance(dim, int) and dim != 1 for dim in shape):
        yield f"its condition is one truth value, not {format_shape(shape)}"


def _parts(node: Node) -> Iterator[str]:
    """What is stacked in parts has the size of a part along its axis (IR, TensorIterator)."""
    for value, port in node.body.exits():
        shape = _shape(value)
        if not isinstance(port, Stacked) or shape is None:
            continue
        rank = len(shape) + (not port.keepdims)
        if not -rank <= port.axis < rank:
            yield f"{format_shape(shape)} cannot be stacked along axis {port.axis}"
        elif port.keepdims and differ(shape[port.axis], port.part_size):
            yield f"{format_shape(shape)} is no part of {port.part_size} along axis {port.axis}"


def _slices(node: Node) -> Iterator[str]:
    """What is sliced row by row, from end to end, has as many rows as all else that is."""
    sizes = set()
    for port in node.body.inputs:
        if not isinstance(port, Sliced) or port.part_size != 1 or node.input(0) is not None:
            continue
        shape = _shape(node.inputs[port.input])
        whole = (port.stride, port.start, port.end) in ((1, 0, -1), (-1, -1, 0))
        if whole and shape and -len(shape) <= port.axis < len(shape):
            sizes.add(shape[port.axis])
    known = sorted(size for size in sizes if isinstance(size, int))
    if len(known) > 1:
        yield f"its slices are {' and '.join(map(str, known))}"


def _endless(node: Node) -> Iterator[str]:
    """A Loop without a trip count whose condition stays true never ends."""
    first = values_of(node.input(1))
    starts = node.input(1) is None or (first is not None and first.all())
    if node.input(0) is not None or not starts:
        return
    ports = dict(node.body.entries())
    if any(isinstance(port, Sliced) for port in ports.values()):
        return
    for index, (value, port) in enumerate(node.body.exits()):
        if isinstance(port, Condition):
            while value.producer is not None and value.producer.op == "Identity":
                (value,) = value.producer.inputs  # type: ignore[assignment]
            inside, again = values_of(value), ports.get(value)
            kept = isinstance(again, Carried) and again.output == index
            if kept or (inside is not None and inside.all()):
                yield "it has no trip count, and its condition stays true: it never ends"


def _boxes(node: Node) -> Iterator[str]:
    """Boxes [batch, boxes, 4] and scores [batch, classes, boxes] (ONNX, NonMaxSuppression)."""
    boxes, scores = (_shape(value) for value in node.inputs[:2])
    if not boxes or not scores or not len(boxes) == len(scores) == 3:
        return
    if differ(boxes[0], scores[0]) or differ(boxes[1], scores[2]) or differ(boxes[2], 4):
        yield f"{format_shape(boxes)} and {format_shape(scores)} are no boxes and scores"


def _shape(value: Value | None) -> Shape:
    return None if value is None else value.shape


def _shapes(node: Node) -> str:
    return " and ".join(format_shape(v.shape) for v in node.inputs if v is not None)


_ALONG_AN_AXIS = (
    "ArgMax", "ArgMin", "Compress", "Hardmax", "LayerNormalization", "LogSoftmax",
    "LpNormalization", "RMSNormalization", "ShuffleChannels", "Softmax",
)  # fmt: skip
_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceLogicalAnd",
    "ReduceLogicalOr", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
)  # fmt: skip
_AXES_IN_INPUT_1 = (
    "IDFT", "IRDFT", "LRN", "MVN", "NormalizeL2", "RDFT", "ir::DFT",
)  # fmt: skip

CHECKS: dict[str, tuple[Check, ...]] = {
    **dict.fromkeys(_ALONG_AN_AXIS, (_axis_attribute("axis"),)),
    **dict.fromkeys(_AXES_IN_INPUT_1, (_axis_input(1),)),
    **dict.fromkeys(_REDUCTIONS, (_rank(0, 1, 1), _axis_input(1))),
    "OneHot": (_axis_attribute("axis", 1), _single(1), _rank(1, 1, 2)),
    "ir::OneHot": (_axis_attribute("axis", 1), _single(1, 2, 3)),
    **dict.fromkeys(("TopK", "ir::TopK"), (_axis_attribute("axis"), _single(1), _top)),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), (_recurrent,)),
    "Expand": (_rank(1, 1, 1), _not_negative(1), _expand),
    "Tile": (_rank(1, 1, 1), _not_negative(1)),
    **dict.fromkeys((*CONVOLUTION, *POOLING), (window,)),
    **dict.fromkeys(("Conv", "ConvTranspose"), (nn.convolution, window)),
    "DeformConv": (nn.convolution, nn.deformable_convolution, window),
    "ConvolutionBackpropData": (nn.transposed_convolution, window),
    "Col2Im": (nn.blocks_to_image, nn.places_of_blocks),
    "GridSample": (_rank(3), _rank(3, 1 << 30, 1), _grid),
    "GroupNormalization": (nn.group_normalization,),
    "Attention": (nn.attention,),
    "ScaledDotProductAttention": (nn.scaled_attention,),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), (_quantization,)),
    "ScatterElements": (_axis_input(3), _single(3), _indexed_elements, _updates),
    "GatherND": (_batches, _places),
    "ScatterND": (_places,),
    "ScatterUpdate": (_axis_input(3), _single(3)),
    **dict.fromkeys(("CumProd", "CumSum"), (_axis_input(1), _single(1))),
    "ir::Split": (_rank(1), _axis_input(1), _single(1)),
    "VariadicSplit": (_rank(1), _axis_input(1), _single(1), _lengths),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), (_rank(3), nn.blocks)),
    **dict.fromkeys(("GRUCell", "RNNCell"), _ranks(2, 2, 2, 2, 1)),
    "LSTMCell": _ranks(2, 2, 2, 2, 2, 1),
    **dict.fromkeys(("GRUSequence", "RNNSequence"), _ranks(3, 3, 1, 3, 3, 2)),
    "LSTMSequence": _ranks(3, 3, 3, 1, 3, 3, 2),
    "If": (_one_condition,),
    "Loop": (_one_condition, _parts, _slices, _endless),
    "NonMaxSuppression": (_rank(3, 3), _rank(3, 3, 1), _single(2, 3, 4), _boxes),
    "Broadcast": (_not_negative(1),),
    "CenterCropPad": (_axis_attribute("axes"),),
    "Concat": (_axis_attribute("axis"), _concat),
    "ConstantOfShape": (_rank(1, 1), _not_negative(0)),
    "Einsum": (_einsum,),
    "EyeLike": (_rank(2, 2),),
    "Flatten": (_axis_attribute("axis", 1),),
    "Gather": (_rank(1), _axis_input(2), _single(2), _batches),
    "GatherElements": (_axis_attribute("axis"), _indexed_elements, _fewer),
    "Gemm": (_gemm,),
    "Interpolate": (_axis_input(2), _rank(1, 1, 1), _interpolation),
    "MatMul": (_matmul,),
    "MeanVarianceNormalization": (_axis_attribute("axes"),),
    "PRelu": (_elementwise,),
    "Pad": (_axis_input(3), _pad),
    "ir::Pad": (_rank(1, 1, 1), _rank(1, 1, 2), _pad_ends),
    "Range": (_single(0, 1, 2), _step),
    "ir::RandomUniform": (_single(1, 2), _interval),
    "Reshape": (_rank(1, 1, 1), _reshape),
    "Resize": (_axis_attribute("axes"), _rank(1, 1, 2), _rank(1, 1, 3), _interpolation),
    "ReverseSequence": (
        _rank(2),
        _rank(1, 1, 1),
        _axis_attribute("batch_axis"),
        _axis_attribute("time_axis"),
        _reversal,
    ),
    "Roll": (_axis_input(2),),
    "Slice": (_rank(1), _axis_input(3), _slice),
    "STFT": (_frames, _rank(2, 3), _rank(1, 1, 2)),
    "SliceScatter": (_axis_input(5),),
    "Split": (_rank(1), _axis_attribute("axis"), _split),
    "Squeeze": (_axis_input(1), _squeeze),
    "Transpose": (_transpose,),
    "Trilu": (_rank(2),),
    "Unsqueeze": (_rank(0, 1, 1), _unsqueeze),
}
