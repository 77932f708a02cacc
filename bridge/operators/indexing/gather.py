"""Gather, GatherND, GatherTree, Compress."""

import numpy as np

from bridge.neutral.graph import Body, Graph
from bridge.neutral.inference import (
    constraints as must,
    first,
    infers,
    infers_shape,
    knows,
    place,
    require,
)
from bridge.neutral.inference.constraints import contradiction
from bridge.neutral.inference.dims import at_most, dim_product, rank_sum
from bridge.neutral.inference.known import known_of, unknown
from bridge.neutral.ports import Carried, Invariant, Iteration, Stacked, Yield
from bridge.neutral.types import (
    ANY,
    I64,
    I64_MAX,
    STRING,
    Dim,
    KnownValue,
    Shape,
    TensorType,
    Type,
    differ,
    format_shape,
)
from bridge.operators import Builder, Node, Refused, Value, legalizes, ranks, reads, required
from bridge.operators.guarding import (
    SafeInputs,
    Unsafe,
    guards,
    if_taken,
    is_surely_filled,
    zero_for,
)


@legalizes("Gather", target="onnx")
def gather_for_onnx(b: Builder, node: Node) -> Value | None:
    """Gather-8 with batch dimensions as GatherND, with the axis moved behind the batch dimensions.
    An index out of range returns 0."""
    data, indices, axis = required(node, 0, 1, 2)
    (along,) = b.constants(axis, "its axis")
    batch = node.attributes["batch_dims"]
    if why := contradiction(node):
        raise Refused(why)
    rank, index_rank = ranks(node, 0, 1) if batch else (len(data.shape or ()), 0)
    batch = batch % index_rank if batch < 0 else batch
    wanted, outside = known_of(indices).array, out_of_range(data, indices, along)
    if wanted is None or outside is None:
        if batch == node.attributes["batch_dims"] == 0:
            return None
        return _gathered(b, data, indices, along, batch)
    at = along % rank
    if not data.dims[at]:
        before, after = (b.sizes(data, *axes) for axes in (range(at), range(at + 1, rank)))
        return b.zeros(data, before, *outside.shape[batch:], after)
    inside = b.like(np.where(outside, 0, wanted), indices)
    between, behind = (1,) * (at - batch), (1,) * (rank - 1 - at)
    shape = (*outside.shape[:batch], *between, *outside.shape[batch:], *behind)
    absent, zero = b.constant(outside.reshape(shape)), b.like(0, data)
    return b.where(absent, zero, _gathered(b, data, inside, along, batch))


def out_of_range(data: Value, indices: Value, axis: int) -> np.ndarray | None:
    """A mask of the indices known to be out of range; None if there are none."""
    wanted = known_of(indices).array
    length = None if data.shape is None else data.shape[axis]
    if wanted is None or not isinstance(length, int) or data.element is STRING:
        return None
    outside = (wanted < -length) | (wanted >= length)
    return outside if outside.any() else None


def _gathered(b: Builder, data: Value, indices: Value, axis: int, batch: int) -> Value:
    """Gather-8 along an axis. With batch dimensions, it uses GatherND."""
    if batch == 0:
        return b.op("Gather", data, indices, axis)
    rank, index_rank = len(data.dims), len(indices.dims)
    at = axis % rank
    between = at - batch
    others = [i for i in range(rank) if i != at]
    moved = b.transpose(data, *others[:batch], at, *others[batch:])
    gathered = b.op("GatherND", moved, b.unsqueeze(indices, -1), batch_dims=batch)
    # The order is now [batch, indices, between, behind]. The axes between must come before the
    # indices.
    middle = range(index_rank, index_rank + between)
    behind = range(index_rank + between, rank + index_rank - batch - 1)
    return b.transpose(gathered, *range(batch), *middle, *range(batch, index_rank), *behind)


@legalizes("GatherElements", target="ir")
def gather_elements_for_ir(b: Builder, node: Node) -> Value | None:
    """GatherElements (11 to 13). In IR, data and indices have equal sizes on all axes but one. In
    ONNX, there may be fewer indices."""
    data, indices = required(node, 0, 1)
    if data.shape is None or indices.shape is None or len(data.shape) != len(indices.shape):
        return None  # Different ranks fail only if the node runs.
    axis = node.attributes["axis"] % len(data.shape)
    part = data
    for i, (d, n) in enumerate(zip(data.shape, indices.shape, strict=True)):
        if i != axis and d != n:
            first = b.counted(n) if isinstance(n, int) else b.positions(indices, i)
            part = b.op("Gather", part, first, i)
    agreed = (*indices.shape[:axis], data.shape[axis], *indices.shape[axis + 1 :])
    if part is data or part.shape != agreed:
        return None  # Unknown sizes are assumed to be equal.
    return b.op("GatherElements", part, indices, axis=axis)


@reads("GatherND", format="ir", until=7)
def read_gather_nd_5(b: Builder, node: Node) -> Value | None:
    """GatherND-5 joins the batch dimensions into one."""
    batch = int(node.attributes.get("batch_dims", "0"))
    if batch < 2:
        return b.op("GatherND", *node.inputs, batch_dims=batch)
    gathered = b.op("GatherND", *node.inputs, batch_dims=batch)
    shape = b.op("Shape", gathered)
    rest = b.op("Slice", shape, *(b.constant([v]) for v in (batch, I64_MAX, 0, 1)))
    return b.op("Reshape", gathered, b.concat(0, b.constant([-1]), rest))


@legalizes("Compress", target="ir")
def compress_for_ir(b: Builder, node: Node) -> Value:
    """Compress (9 to 28): the elements at the indices from NonZero."""
    x, condition = node.inputs[0], node.inputs[1]
    axis = node.attributes["axis"]
    if axis is None:
        x, axis = b.op("Reshape", x, [-1]), 0
    chosen = b.op("Squeeze", b.op("NonZero", condition), [0])
    return b.op("Gather", x, chosen, axis)


@legalizes("GatherTree", target="onnx")
def gather_tree_for_onnx(b: Builder, node: Node) -> Value:
    """GatherTree-1: from the last step backwards, each beam takes the token of its ancestor.

    A Loop follows the numbers of the parents, and a Gather at the end reads the tokens. Steps
    behind the length of a batch, or behind its first end token, become the end token.
    """
    steps, parents, lengths, end = required(node, 0, 1, 2, 3)
    time, beams = b.size(steps, 0), b.size(steps, 2)
    zero, one = b.constant(0), b.constant(1)
    last = b.min(b.as_i64(lengths), time) - one
    times = b.op("Reshape", b.op("Range", zero, time, one), [-1, 1, 1])
    inside = times <= b.op("Reshape", last, [1, -1, 1])
    # Behind the length of a batch, every beam is its own parent.
    beam_numbers = b.op("Range", zero, beams, one)
    shape = b.op("Shape", steps)
    chain = b.where(inside, b.as_i64(parents), b.op("Expand", beam_numbers, shape))
    beam = b.op("Expand", beam_numbers, b.op("Slice", shape, [1], [3]))
    beams_at = _beams(b, b.flip(chain, 0), beam, time)
    tokens = b.op("GatherElements", steps, b.flip(beams_at, 0), axis=2)
    end = b.cast(end, steps.element) if end.element is not steps.element else end
    tokens = b.where(inside, tokens, end)
    ended = b.op("Cast", tokens.equal(end), to=I64)
    before = b.op("CumSum", ended, 0, exclusive=True, reverse=False)
    return b.where(before > zero, end, tokens)


def _beams(b: Builder, backward: Value, beam: Value, time: Value) -> Value:
    """The beam of every path at each step, from the last step backwards: [time, batch, beams].
    `backward` has the parents, beginning with the last step."""
    nodes: list[Node] = []
    inner = Builder(nodes, b.name, b.target)
    at = Value(TensorType(I64, ()))
    current = Value(beam.type)
    parents = Value(backward.type)
    row = inner.op("Gather", parents, at, 0)
    following = inner.op("GatherElements", row, current, axis=1)
    same = inner.op("Identity", current)
    body = Body(
        Graph([at, current, parents], [following, same], nodes, "beams"),
        [Iteration(), Carried(2, 0), Invariant(3)],
        [Yield(None), Stacked(0, keepdims=False)],
    )
    return b.node("Loop", [time, None, beam, backward], 1, {}, (body,)).outputs[0]


@infers("Gather")
def infer_gather(node: Node) -> list[Type]:
    """Gather: the indices' shape, but for batch axes, in the place of the axis."""
    data, indices = first(node, 0), first(node, 1)
    axis = known_of(node.inputs[2]).ints
    batch = node.attributes["batch_dims"]
    if indices.rank is not None and batch < 0:
        batch += indices.rank
    if data.shape is None or indices.shape is None or axis is None:
        return [TensorType(data.element, unknown(rank_sum(data.rank, indices.rank, -1 - batch)))]
    at = place(axis[0], len(data.shape))
    dims = (*data.shape[:at], *indices.shape[batch:], *data.shape[at + 1 :])
    return [TensorType(data.element, dims)]


@knows("Gather")
def gather_content(node: Node) -> KnownValue | None:
    """Gather: elements of a vector at known places."""
    indices = known_of(node.inputs[1]).ints if first(node).rank == 1 else None
    content = None if indices is None else known_of(node.inputs[0]).parts
    if content is None or indices is None:
        return None
    require(all(-len(content) <= i < len(content) for i in indices))
    return tuple(content[i] for i in indices)


@infers_shape("GatherND")
def shape_of_gathered_nd(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """GatherND: the indices' shape but the last axis, which says how many axes of the data are
    taken."""
    indices = first(node, 1).shape
    require(indices is None or len(indices) > 0)
    if indices is None or not isinstance(indices[-1], int):
        return None
    return (*indices[:-1], *dims[node.attributes["batch_dims"] + indices[-1] :])


@infers("NonZero")
def infer_non_zero(node: Node) -> list[Type]:
    """NonZero: [rank, number found]. Both engines take a scalar for a vector of one element."""
    dims = first(node).shape
    dims_of_places = (ANY, ANY) if dims is None else (len(dims) or 1, at_most(dim_product(dims)))
    return [TensorType(node.attributes["output_type"], dims_of_places)]


def batches(node: Node) -> must.Constraints:
    """Gather-8 of IR and GatherND: the first axes of data and indices go together."""
    data, indices = must.operands(node, 2)
    if indices.rank is None:
        return
    # Behind them GatherND has the axis that holds the places.
    most = indices.rank - (node.op == "GatherND")
    batch = node.attributes["batch_dims"]
    least = -indices.rank if node.op == "Gather" else 0
    if not least <= batch <= most:
        yield f"{indices} has no {batch} batch dimensions"
        return
    batch += indices.rank if batch < 0 else 0
    if data.rank is None:
        return
    why = "{} and {} differ in batch dimensions"
    if batch > data.rank:
        yield why.format(data, indices)
    for axis in range(batch):
        yield must.Same(data[axis], indices[axis], why, data, indices)
    axes = known_of(node.input(2)).ints if node.op == "Gather" else None
    if axes and (axes[0] % data.rank if data.rank else 0) < batch:
        yield f"its axis {axes[0]} is one of its {batch} batch dimensions"


def ranks_of_gather(node: Node) -> must.Constraints:
    """Gather without batch dimensions: the indices' axes take the place of one axis."""
    data, indices = must.operands(node, 2)
    if node.attributes["batch_dims"]:
        return
    if indices.rank is not None:
        yield must.Ranks(must.Operand(node.outputs[0]), data, indices.rank - 1)
    elif data.rank is not None:
        yield must.Ranks(must.Operand(node.outputs[0]), indices, data.rank - 1)


def places_in_data(node: Node) -> must.Constraints:
    """GatherND and ScatterND: indices [..., k] of places in the first k axes, and for each place
    what lies there, which has k axes fewer than the data."""
    data, indices, updates = must.operands(node, 3)
    out = must.Operand(node.outputs[0])
    if indices.shape is None:
        return
    deep = indices[-1] if indices.shape else 0
    if not isinstance(deep, int):
        return
    fewer = len(indices.shape) - 1 - deep
    batch = node.attributes.get("batch_dims", 0)
    if indices.shape and node.op == "GatherND":
        yield must.Ranks(out, data, fewer - batch)
    elif indices.shape:
        yield must.Ranks(updates, data, fewer)
        yield must.Ranks(out, data)
    if data.shape is None:
        return
    if not 1 <= deep <= len(data.shape) - batch:
        yield f"{indices} are no indices of places in {data}"
    elif updates.shape is not None and node.op == "ScatterND":
        wanted = (*indices.shape[:-1], *data.shape[deep:])
        if len(wanted) != len(updates.shape) or any(map(differ, wanted, updates.shape)):
            yield f"{updates} are no updates, which are {format_shape(wanted)}"


def indices_of_elements(node: Node) -> must.Constraints:
    """GatherElements and ScatterElements: an index has as many axes as the data."""
    data, indices = must.operands(node, 2)
    yield must.Ranks(data, indices, 0, "{} differ in rank", must.Shapes(node.inputs[:3]))
    yield must.Ranks(
        must.Operand(node.outputs[0]), data if node.op == "ScatterElements" else indices
    )


def no_more_indices(node: Node) -> must.Constraints:
    """GatherElements: no more indices along another axis than there are elements."""
    data, indices = must.operands(node, 2)
    rank = data.rank or 0
    for axis in range(rank):
        there, asked = data[axis], indices[axis]
        along = axis == node.attributes["axis"] % rank
        if not along and isinstance(there, int) and isinstance(asked, int) and asked > there:
            yield f"{indices} are more indices than {data} has elements"


must.hold("Compress", must.axis_attribute("axis"))
must.hold(
    "Gather", must.has_rank(1), must.axes_in(2), must.one_element(2), batches, ranks_of_gather
)
must.hold("GatherElements", must.axis_attribute("axis"), indices_of_elements, no_more_indices)
must.hold("GatherND", batches, places_in_data)


@guards("Gather")
def _gather(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Gather: the first element is taken, of data that have one."""
    data, indices, axes = node.inputs
    axis = known_of(axes).ints
    if data is None or indices is None or axis is None or data.shape is None:
        raise Unsafe("its axis, or the rank of its input, is not known")
    if node.attributes["batch_dims"]:
        raise Unsafe("it takes batch by batch")
    made = _index(b, data, indices, axis[0] % len(data.shape), counts)
    return None if made is None else [*made, axes]


@guards("GatherElements")
def _gather_elements(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """GatherElements: the first element is taken, of data that have one."""
    data, indices = node.inputs
    if data is None or indices is None or data.shape is None or indices.shape is None:
        raise Unsafe("the rank of its input is not known")
    axis = node.attributes["axis"] % len(data.shape)
    pairs = zip(data.shape, indices.shape, strict=False)
    if any(a != b and place != axis for place, (a, b) in enumerate(pairs)):
        raise Unsafe("sizes may not go together there")
    return _index(b, data, indices, axis, counts)


def _index(
    b: Builder, data: Value, indices: Value, axis: int, counts: Value
) -> tuple[Value, Value] | None:
    """Data and indices along an axis, such that these are in range."""
    size, known = data.dims[axis], known_of(indices).ints
    if isinstance(size, int) and known is not None and all(-size <= i < size for i in known):
        return None
    if not is_surely_filled((size,)):
        if data.element is None:
            raise Unsafe("its element type is not known")
        rank = len(data.dims)
        more = if_taken(b, counts, b.constant([0]), 1)
        row = [*data.dims[:axis], 1, *data.dims[axis + 1 :]]
        if all(isinstance(dim, int) for dim in row):
            # The size of a Slice has a bound that is known early, of a Pad by a computed width not.
            zeros = b.filled(known_of(zero_for(b, data)).array, row, data.element)
            data = b.concat(axis, data, b.op("Slice", zeros, [0], more, [axis]))
        else:
            pads = [b.constant([0] * (rank + axis)), more, b.constant([0] * (rank - axis - 1))]
            data = b.op("Pad", data, b.concat(0, *pads), zero_for(b, data), mode="constant")
    return data, if_taken(b, counts, indices, 0)


@guards("Compress")
def _compress(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Compress: there is no condition without an element."""
    data, condition = node.inputs
    axis = node.attributes.get("axis")
    if data is None or condition is None or not data.shape or not condition.shape:
        raise Unsafe("the rank of its input is not known")
    if axis is None and len(data.shape) > 1:
        raise Unsafe("it may ask for elements that do not exist")
    if data.shape[axis or 0] != condition.shape[0]:
        raise Unsafe("it may ask for elements that do not exist")
    return None
