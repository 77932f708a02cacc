"""Common parts of LSTM, GRU and RNN: layouts, gates, activations, and the layer as a Loop.

ONNX has time first: [seq, batch, input], with states [directions, batch, hidden]. IR has the batch
first: [batch, seq, input], with states [batch, directions, hidden]. ONNX's B has the biases of W
and then the biases of R, but IR's B has their sum.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bridge.neutral.graph import producer_of
from bridge.neutral.inference import constraints as must
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ANY, I32, I64
from bridge.operators import Builder, Node, Refused, Value
from bridge.operators.bodies import Values, along


@dataclass(frozen=True)
class Activation:
    """An activation function by ONNX's name in lower case, with its parameters if the node has
    them."""

    name: str
    alpha: float | None = None
    beta: float | None = None


ALPHA = {
    "affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0,
    "hardsigmoid": 0.2, "elu": 1.0,
}  # fmt: skip
BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
SEQUENCE_ACTIVATIONS = {"sigmoid", "tanh", "relu"}
"""The activations of IR's sequence operators (LSTMSequence-5, GRUSequence-5, RNNSequence-5)."""


@dataclass(frozen=True)
class RecurrentLayer:
    """The common attributes of ONNX's LSTM, GRU and RNN."""

    directions: tuple[str, ...]
    hidden: int
    batch_first: bool
    clip: float
    activations: tuple[tuple[Activation, ...], ...]
    """The activations of the cell, for each direction."""


def layer_of(node: Node, gates: int, defaults: tuple[str, ...]) -> RecurrentLayer:
    """The layer that an ONNX recurrent node describes."""
    attributes = node.attributes
    direction = attributes.get("direction", "forward")
    directions = ("forward", "reverse") if direction == "bidirectional" else (direction,)
    names = [a.lower() for a in attributes.get("activations") or defaults * len(directions)]
    if len(names) < len(defaults) * len(directions):
        raise Refused(f"it has {len(names)} activations for {len(directions)} directions")
    alphas = list(attributes.get("activation_alpha") or ())
    betas = list(attributes.get("activation_beta") or ())
    # Each list has parameters, in order, for the functions with such a parameter (ONNX, operator
    # LSTM).
    functions = [
        Activation(
            name,
            alphas.pop(0) if name in ALPHA and alphas else ALPHA.get(name),
            betas.pop(0) if name in BETA and betas else BETA.get(name),
        )
        for name in names
    ]
    count = len(defaults)
    return RecurrentLayer(
        directions,
        _hidden_size(node, gates),
        attributes.get("layout", 0) == 1,
        attributes.get("clip") or 0.0,
        tuple(tuple(functions[i * count : (i + 1) * count]) for i in range(len(directions))),
    )


def _hidden_size(node: Node, gates: int) -> int:
    hidden: int = node.attributes.get("hidden_size") or 0
    if hidden:
        return hidden
    w, r = node.input(1), node.input(2)
    wide = r.dims[2] if r is not None and r.rank == 3 else None
    high = w.dims[1] if w is not None and w.rank == 3 else None
    if isinstance(wide, int):
        return wide
    if isinstance(high, int):
        return high // gates
    raise Refused("its hidden_size is unknown; set the attribute")


ONNX_GATES = "iofc"
IR_GATES = "fico"
"""The order of LSTM's gates in each format, one letter per gate."""

GATES = {"LSTMSequence": 4, "GRUSequence": 3, "RNNSequence": 1}


def fits_sequence(layer: RecurrentLayer) -> bool:
    """Whether IR's sequence operators can compute this layer."""
    names = {a.name for functions in layer.activations for a in functions}
    return names <= SEQUENCE_ACTIVATIONS and len(set(layer.activations)) == 1


def to_sequence(
    b: Builder,
    layer: RecurrentLayer,
    op: str,
    x: Value,
    states: Sequence[Value | None],
    lengths: Value | None,
    weights: Sequence[Value],
    **attributes: bool,
) -> list[Value]:
    """An ONNX layer as IR's `op`. `weights` are W, R and B in IR's layout. Returns the outputs in
    ONNX's layout."""
    major = x if layer.batch_first else b.transpose(x, 1, 0, 2)
    batch = b.sizes(major, 0)
    count = len(layer.directions)
    initial = [
        b.zeros(x, batch, count, layer.hidden) if s is None
        else s if layer.batch_first else b.transpose(s, 1, 0, 2)
        for s in states
    ]  # fmt: skip
    if lengths is None:
        lengths = b.expand(b.cast(b.size(major, 1), I32), batch)
    w, r, bias = weights
    # In IR, only the shapes of the weights have the hidden size. ONNX's attribute has it even if
    # the shapes are unknown.
    rows = GATES[op] * layer.hidden
    w, r = _of_rows(b, w, count, rows, -1), _of_rows(b, r, count, rows, layer.hidden)
    y, *last = b.ops(
        op,
        1 + len(states),
        major,
        *initial,
        lengths,
        w,
        r,
        bias,
        activations=tuple(a.name for a in layer.activations[0]),
        clip=layer.clip,
        direction="bidirectional" if count == 2 else layer.directions[0],
        hidden_size=layer.hidden,
        **attributes,
    )
    if layer.batch_first:
        return [b.transpose(y, 0, 2, 1, 3), *last]
    return [b.transpose(y, 2, 1, 0, 3), *(b.transpose(s, 1, 0, 2) for s in last)]


def _of_rows(b: Builder, weights: Value, *sizes: int) -> Value:
    """The weights reshaped to `sizes`, unless these sizes are already known. -1 is an inferred
    size."""
    if weights.rank == 3 and all(isinstance(dim, int) for dim in weights.dims[:2]):
        return weights
    return b.reshape(weights, *sizes)


def permute_gates(b: Builder, x: Value, have: str, want: str, axis: int, hidden: int) -> Value:
    """`x` with its gates `have` along `axis` rearranged into the order `want`. Each gate is one
    letter."""
    if have == want:
        return x
    order = [have.index(gate) for gate in want]
    values = known_of(x).array
    if values is not None:
        parts = np.split(values, len(have), axis)
        return b.constant(np.concatenate([parts[i] for i in order], axis))
    scaled = _scaled_again(b, x, order, axis)
    if scaled is not None:
        return scaled
    earlier = _permuted(x, axis, hidden, len(have))
    if earlier is not None:
        source, before = earlier
        order, x = [before[i] for i in order], source
    if order == sorted(order):
        return x
    pieces = b.split(x, axis, *[hidden] * len(have))
    return b.concat(axis, *(pieces[i] for i in order))


def _scaled_again(b: Builder, x: Value, order: Sequence[int], axis: int) -> Value | None:
    """Scaled integers with their gates in this order; None if `x` has another form."""
    node = producer_of(x, "Cast", "DequantizeLinear", "Mul", "Sub")
    if node is None or x.rank is None:
        return None
    if node.op == "DequantizeLinear" and node.attributes["block_size"]:
        return None
    inputs: list[Value | None] = []
    for index, value in enumerate(node.inputs):
        if value is None or value.rank is None:
            return None
        place = axis - x.rank + value.rank
        if node.op == "DequantizeLinear" and index:
            place = 0 if value.rank and node.attributes["axis"] % x.rank == axis else -1
        if place < 0 or value.dims[place] == 1:
            inputs.append(value)
        elif value.constant is not None:
            parts = np.split(value.constant.array(), len(order), place)
            array = np.concatenate([parts[i] for i in order], place)
            inputs.append(b.tensor(Tensor.of(array), list(value.names)))
        else:
            inputs.append(_scaled_again(b, value, order, place))
    if None in inputs:
        return None
    return b.node(node.op, inputs, 1, dict(node.attributes), name=node.name).outputs[0]


def _permuted(x: Value, axis: int, hidden: int, gates: int) -> tuple[Value, list[int]] | None:
    """The input of `permute_gates`, and the order of gates that it made."""
    joined = producer_of(x, "Concat")
    if joined is None or joined.attributes["axis"] != axis:
        return None
    parts = joined.operands
    split = producer_of(parts[0], "Split")
    if split is None or not splits(split, axis, [hidden] * gates):
        return None
    if len(parts) != gates or any(part.producer is not split for part in parts):
        return None
    return split.operand(0), [split.outputs.index(part) for part in parts]


def splits(node: Node, axis: int, sizes: list[int]) -> bool:
    """Whether a Split gives parts of these sizes."""
    if node.attributes["axis"] != axis:
        return False
    parts = [None if part.shape is None else part.shape[axis] for part in node.outputs]
    return parts == sizes


def summed_bias(
    b: Builder, layer: RecurrentLayer, gates: int, bias: Value | None, x: Value
) -> Value:
    """ONNX's B [directions, 2*gates*hidden] as the sum of its halves; zeros if it is absent."""
    width = gates * layer.hidden
    if bias is None:
        return b.zeros(x, len(layer.directions), width)
    values = known_of(bias).array
    if values is not None:
        return b.constant(values[:, :width] + values[:, width:])
    return _half(bias, width) or b.op("Add", *b.split(bias, 1, width, width))


def _half(bias: Value, width: int) -> Value | None:
    """The biases before `doubled_bias` doubled them."""
    joined = producer_of(bias, "Concat")
    if joined is None or len(joined.inputs) != 2:
        return None
    first, second = joined.inputs
    known = known_of(second).array
    fits = first is not None and first.shape is not None and first.shape[-1:] == (width,)
    return first if fits and known is not None and not known.any() else None


# The layer as a Loop ----------------------------------------------------------------------------

CellStep = Callable[..., Values]
"""One step of a cell: (builder, layer of one direction, share of W, states, parameters) to the new
states. The share of W is [batch, gates*hidden], and the states are [batch, hidden]."""


def to_loop(
    b: Builder,
    layer: RecurrentLayer,
    x: Value,
    states: Sequence[Value | None],
    lengths: Value | None,
    w: Value | None,
    bias: Value,
    parameters: Sequence[Value],
    step: CellStep,
    aligned: bool = False,
) -> list[Value]:
    """An ONNX layer as one Loop per direction, for layers that IR's sequences cannot express.

    `w` is [directions, gates*hidden, input]. `bias` [directions, gates*hidden] is added to the
    product of W and the input; without `w` each step takes its part of the input. The first axis of
    `parameters` is the direction. If `aligned`, backward steps begin with the last element of each
    sequence, and steps see zeros for a state that stayed. Returns the outputs in ONNX's layout.
    """
    time_major = b.transpose(x, 1, 0, 2) if layer.batch_first else x
    batch = b.sizes(time_major, 1)
    results = []
    for direction, way in enumerate(layer.directions):
        alone = replace(layer, directions=(way,), activations=(layer.activations[direction],))
        initial = [
            b.zeros(x, batch, layer.hidden) if s is None
            else _sized(b, part_of(b, s, 1 if layer.batch_first else 0, direction), layer.hidden)
            for s in states
        ]  # fmt: skip
        share = time_major
        if w is not None:
            share = b.op("MatMul", share, part_of(b, w, 0, direction), transpose_b=True)
            share += part_of(b, bias, 0, direction)
        own = [part_of(b, p, 0, direction) for p in parameters]
        steps = partial(step, layer=alone)
        results.append(in_steps(b, steps, share, initial, lengths, own, way == "reverse", aligned))
    state_axis = 1 if layer.batch_first else 0
    outputs = []
    for index, parts in enumerate(zip(*results, strict=True)):
        axis = (2 if layer.batch_first else 1) if index == 0 else state_axis
        ordered = [b.transpose(p, 1, 0, 2) if index == 0 and layer.batch_first else p
                   for p in parts]  # fmt: skip
        new = b.constant([axis])
        outputs.append(b.concat(axis, *(b.op("Unsqueeze", p, new) for p in ordered)))
    return outputs


def part_of(b: Builder, x: Value, axis: int, index: int) -> Value:
    """Element `index` of `x` along `axis`, without this axis."""
    values = known_of(x).array
    if values is not None:
        return b.constant(np.take(values, index, axis))
    return b.squeeze(b.take(x, axis, index), axis)


def _sized(b: Builder, state: Value, hidden: int) -> Value:
    """`state` with a known last size, taken from the layer."""
    known = state.shape is not None and isinstance(state.shape[-1], int)
    return state if known else b.reshape(state, -1, hidden)


def in_steps(
    b: Builder,
    step: CellStep,
    x: Value,
    states: Values,
    lengths: Value | None,
    parameters: Values,
    reverse: bool,
    aligned: bool = False,
) -> Values:
    """The results [seq, batch, hidden] of all steps of a cell along `x`, and the last states
    [batch, hidden]. A sequence that ended gives zeros and keeps its states. The step needs no
    `layer`, and its share is a part of `x`."""

    def body(b: Builder, parts: Values, before: Values, fixed: Values) -> tuple[Values, Values]:
        weights = fixed[: len(parameters)]
        if lengths is None:
            after = step(b, share=parts[0], states=before, parameters=weights)
            return after, [after[0]]
        seen = before
        if aligned:
            is_new = b.op("Unsqueeze", parts[1] <= fixed[-1], [1])
            seen = [b.where(is_new, before[0], 0), *before[1:]]
        after = step(b, share=parts[0], states=seen, parameters=weights)
        inside = b.op("Unsqueeze", parts[1] < fixed[-1], [1])
        y = b.where(inside, after[0], 0)
        kept = [b.where(inside, n, o) for n, o in zip(after, before, strict=True)]
        return kept, [y]

    sliced, fixed = [x], list(parameters)
    if lengths is not None:
        sliced.append(b.positions(x, 0))
        fixed.append(b.cast(lengths, I64))
        some = b.op("Unsqueeze", lengths > 0, [1])
        # The final states of an empty sequence are zeros.
        states = [b.where(some, s, 0) for s in states]
    if lengths is None or not (aligned and reverse):
        last, (y,) = along(b, body, sliced, states, fixed, reverse)
        return [y, *last]
    lengths = b.max(fixed[-1], 1)
    sliced[0] = b.op("ReverseSequence", x, lengths, batch_axis=1, time_axis=0)
    last, (y,) = along(b, body, sliced, states, fixed)
    return [b.op("ReverseSequence", y, lengths, batch_axis=1, time_axis=0), *last]


def activate(b: Builder, function: Activation, x: Value, clip: float = 0.0) -> Value:
    """Applies an activation function of ONNX's recurrent operators to `x` (RNN, LSTM and GRU:
    Activations). `x` is clipped to [-clip, clip] unless `clip` is 0."""
    alpha, beta = function.alpha, function.beta
    if clip:
        x = b.op("Clip", x, b.like(-clip, x), b.like(clip, x))
    match function.name:
        case "sigmoid" | "tanh" | "relu" | "softplus" as name:
            return b.op(name.capitalize(), x)
        case "softsign":
            return x / (abs(x) + 1.0)
        case "affine":
            return x * alpha + beta
        case "scaledtanh":
            return b.op("Tanh", x * beta) * alpha
        case "hardsigmoid":
            return b.op("Clip", x * alpha + beta, b.like(0.0, x), b.like(1.0, x))
        case "leakyrelu":
            below = x * alpha
            return b.where(x < 0.0, below, x)
        case "thresholdedrelu":
            return b.where(x > alpha, x, 0.0)
        case "elu":
            below = (b.op("Exp", x) - 1.0) * alpha
            return b.where(x < 0.0, below, x)
    raise Refused(f"its activation {function.name} is unknown in ONNX")


# Constraints on the inputs ------------------------------------------------------------------------

_RANKS = (3, 3, 3, 2, 1, 3, 3, 2)
"""The ranks of X, W, R, B, the lengths, the initial states and P."""


def layer(node: Node) -> must.Constraints:
    """LSTM, GRU, RNN: the shapes of the inputs. X is [time, batch, input], W and R are [directions,
    gates * hidden, ...], and B is [directions, ...]. The lengths are [batch], the initial states
    [directions, batch, hidden], and P is [directions, 3 * hidden]. In layout 1, the batch comes
    first."""
    hidden = node.attributes.get("hidden_size") or 0
    if hidden < 0:
        yield f"its hidden size is {hidden}"
    x, w, r, b, lengths, *_ = given = must.operands(node, 8)
    for index, (each, rank) in enumerate(zip(given, _RANKS, strict=True)):
        yield must.Rank(each, rank, f"its input {index} is {{}}, not of rank {rank}", each)
    ways = 2 if node.attributes.get("direction") == "bidirectional" else 1
    batch_first = node.attributes.get("layout", 0) == 1
    of_ways = "its input {} is {}, for {} directions"
    for index, axis in ((1, 0), (2, 0), (3, 0), (5, batch_first), (6, batch_first), (7, 0)):
        each = given[index]
        yield must.Same(each[axis], ways, of_ways, index, each, ways)
    shapes = must.Shapes(node.inputs)
    yield must.Same(x[2], w[2], "{} differ in input size", shapes)
    yield must.Same(r[1], w[1], "{} differ in hidden size", shapes)
    yield must.Same(r[2], hidden or ANY, "{} differ in hidden size", shapes)
    both = 2 * w[1] if isinstance(w[1], int) else ANY
    yield must.Same(b[1], both, "{} differ in the size of the bias", shapes)
    batch = x[0 if batch_first else 1]
    of_batch = "its input {} is {}, for a batch of {}"
    yield must.Same(lengths[0], batch, of_batch, 4, lengths, batch)
    of_size = "its input {} is {}, for a hidden size of {}"
    for index in (5, 6):
        state = given[index]
        yield must.Same(state[0 if batch_first else 1], batch, of_batch, index, state, batch)
        yield must.Same(state[2], r[2], of_size, index, state, r[2])


def of_ir(states: int, has_lengths: bool) -> must.Check:
    """IR's cells and sequences: X is [batch, ..., input], each state is
    [batch, ..., hidden], the lengths are [batch], and W and R end in the sizes of X and of the
    states."""

    def check(node: Node) -> must.Constraints:
        x, *given = must.operands(node, states + has_lengths + 3)
        w, r = given[states + has_lengths :]
        shapes = must.Shapes(node.inputs)
        yield must.Same(x[-1], w[-1], "{} differ in input size", shapes)
        for state in given[:states]:
            yield must.Same(state[-1], r[-1], "{} differ in hidden size", shapes)
        for each in given[: states + has_lengths]:
            yield must.Same(each[0], x[0], "{} differ in batch size", shapes)

    return check


must.hold(("GRU", "LSTM", "RNN"), layer)
must.hold(("GRUCell", "RNNCell"), *must.have_ranks(2, 2, 2, 2, 1), of_ir(1, False))
must.hold("LSTMCell", *must.have_ranks(2, 2, 2, 2, 2, 1), of_ir(2, False))
must.hold(("GRUSequence", "RNNSequence"), *must.have_ranks(3, 3, 1, 3, 3, 2), of_ir(1, True))
must.hold("LSTMSequence", *must.have_ranks(3, 3, 3, 1, 3, 3, 2), of_ir(2, True))
