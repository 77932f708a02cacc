"""Sizes that are not known when a model is compiled."""

from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import I64, is_static
from bridge.operators import Result
from bridge.operators.bodies import Values
from bridge.operators.recurrent.recurrent import in_steps, part_of
from bridge.quirks.quirk import GPU, Place, quirk

CELLS = {"GRUSequence": "GRUCell", "LSTMSequence": "LSTMCell", "RNNSequence": "RNNCell"}


@quirk(
    *CELLS,
    uses=True,
    recorded=True,
    symptom="LSTMSequence, GRUSequence and RNNSequence ignore sequence_lengths if a size of their "
    "input is unknown.",
    cost="a layer for each direction, with Selects and ReverseSequences; a Loop of cells if a node "
    "reads the last state of the cell of an LSTM",
)
def lengths_of_dynamic_sequence(b: Builder, node: Node, place: Place) -> Result:
    """No step depends on a later one. Behind its length, a sequence gives 0 and keeps its state.
    Its last hidden state is the output of its last step.
    """
    x, *states, lengths, w, r, bias = (v for v in node.inputs if v is not None)
    if is_static(x.shape) or _cover_all(lengths, x):
        return None
    if len(states) < 2 or not _is_read(node.outputs[2], place):
        ends_read = _is_read(node.outputs[1], place)
        return _at_once(b, node, x, states, b.cast(lengths, I64), [w, r, bias], ends_read)
    direction = node.attributes["direction"]
    ways = ("forward", "reverse") if direction == "bidirectional" else (direction,)
    parts: list[Values] = []
    for index, way in enumerate(ways):
        hidden = node.attributes["hidden_size"]
        initial = [b.reshape(part_of(b, v, 1, index), -1, hidden) for v in states]
        # Large weights stay whole, as the record of the layer needs them. OpenVINO cuts them when
        # it loads the file.
        fixed = [b.squeeze(b.take(v, 0, index), 0) for v in (w, r, bias)]
        major, step = b.transpose(x, 1, 0, 2), partial(_step, node=node)
        y, *last = in_steps(b, step, major, initial, lengths, fixed, way == "reverse")
        parts.append([b.transpose(y, 1, 0, 2), *last])
    return [b.concat(1, *(b.unsqueeze(v, 1) for v in both)) for both in zip(*parts, strict=True)]


def _is_read(value: Value, place: Place) -> bool:
    """Whether a node reads a value. A Transpose without a reader does not count."""
    users = place.users(value)
    idle = sum(user.op == "Transpose" and not place.count(user.outputs[0]) for user in users)
    return place.count(value) > idle


def _at_once(
    b: Builder,
    node: Node,
    x: Value,
    states: Values,
    lengths: Value,
    weights: Values,
    ends_read: bool,
) -> Result:
    """The layer over the whole axis for each direction, with zeros behind the lengths.

    The last hidden state is the output of the last step. The outputs do not show the last state of
    the cell.
    """
    steps, ends = b.positions(x, 1), b.unsqueeze(lengths, 1)
    inside = b.unsqueeze(steps < ends, 1, 3)
    last = b.unsqueeze(steps.equal(ends - 1), 1, 3)
    turned = b.max(lengths, 1)
    direction = node.attributes["direction"]
    ways = ("forward", "reverse") if direction == "bidirectional" else (direction,)
    parts: list[Values] = []
    for index, way in enumerate(ways):
        first = x if way == "forward" else _turned(b, x, turned, 1)
        batch, time = (b.op("Gather", b.op("Shape", first), [axis], 0) for axis in (0, 1))
        whole = b.op("Expand", time, batch)
        own = [b.unsqueeze(part_of(b, v, 1, index), 1) for v in states]
        fixed = [v if len(ways) == 1 else b.take(v, 0, index) for v in weights]
        attributes = {**node.attributes, "direction": "forward"}
        y, *_ = b.ops(node.op, len(node.outputs), first, *own, whole, *fixed, **attributes)
        within = b.where(inside, y, 0)
        within = within if way == "forward" else _turned(b, within, turned, 2)
        parts.append([within])
        # Without a reader it has no node, so that the record stands at the output of the layer.
        if ends_read:
            parts[-1].append(b.op("ReduceSum", b.where(last, y, 0), [2], keepdims=False))
    y, *h = (b.concat(1, *both) for both in zip(*parts, strict=True))
    return [y, *h, *states[len(h) :]]


def _turned(b: Builder, x: Value, lengths: Value, axis: int) -> Value:
    """Each sequence in reverse order, up to its length."""
    return b.op("ReverseSequence", x, lengths, batch_axis=0, time_axis=axis)


def _cover_all(lengths: Value, x: Value) -> bool:
    """Whether all lengths are known to be the size of the time axis."""
    value = lengths.behind("Broadcast", "Cast", "Expand", "Identity", "Reshape")
    size, made = known_of(value).ints, value.producer
    if size is not None:
        return set(size) == {x.shape[1]} if x.shape is not None else False
    if made is None or made.op != "Gather" or known_of(made.inputs[1]).ints != (1,):
        return False
    shape = made.inputs[0].producer if made.inputs[0] is not None else None
    return shape is not None and shape.op == "Shape" and shape.inputs[0] is x


def _step(b: Builder, node: Node, share: Value, states: Values, parameters: Values) -> Values:
    """One step of the cell of a layer."""
    attributes = {name: v for name, v in node.attributes.items() if name != "direction"}
    return b.ops(CELLS[node.op], len(states), share, *states, *parameters, **attributes)


@quirk(
    "MaxPool",
    symptom="A MaxPool with two outputs and auto_pad pads at the wrong end if the size of the "
    "input is unknown.",
    cost="none: explicit pads instead of auto_pad",
)
def padding_of_unknown_size(b: Builder, node: Node, place: Place) -> Result:
    """The explicit pads are the pads that auto_pad means. If they depend on the size, the model is
    refused.
    """
    from bridge.operators.nn.conv import explicitly_padded

    (data,) = node.inputs
    attributes = node.attributes
    assert data is not None
    if len(node.outputs) < 2 or attributes["auto_pad"] == "NOTSET" or is_static(data.shape):
        return None
    kernel = attributes["kernel_shape"]
    return b.ops("MaxPool", 2, data, **explicitly_padded(data, kernel, attributes))


@quirk(
    "ir::NonMaxSuppression",
    recorded=True,
    uses=True,
    engines=(GPU,),
    symptom="In a model whose sizes are all known, NonMaxSuppression always gives as many rows as "
    "there may be at most. The rows behind the selected boxes hold -1.",
    cost="a Slice for the indices, and one for the scores if they are used",
)
def rows_behind_boxes(b: Builder, node: Node, place: Place) -> Result:
    """The operator gives the number of its rows as its third output."""
    indices, scores, count = node.outputs
    if not all(value is None or is_static(value.shape) for value in node.inputs[:2]):
        return None
    readers = [reader for value in (indices, scores) for reader in place.users(value)]
    if all(_is_counted(reader, count) for reader in readers) and not {
        indices, scores
    } & {*place.graph.outputs}:  # fmt: skip
        return None
    made = b.node(node.op, node.inputs, 3, node.attributes, extras=node.extras).outputs
    return *(b.op("Slice", value, [0], made[2], [0], [1]) for value in made[:2]), made[2]


def _is_counted(node: Node, count: Value) -> bool:
    """Whether a node takes the first rows, as many as a value says."""
    return node.op == "Slice" and node.inputs[2] is count and known_of(node.inputs[1]).ints == (0,)
