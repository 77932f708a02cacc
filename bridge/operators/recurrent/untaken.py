"""Recurrent layers in a branch that is not taken."""

from collections.abc import Mapping
from dataclasses import dataclass

from bridge.neutral.types import ANY
from bridge.operators import Builder, Node, Value
from bridge.operators.guarding import SafeInputs, Unsafe, guards, if_taken, resized, with_at_least


@dataclass(frozen=True)
class _Recurrent:
    """The axis of the batch of each input of a recurrent layer that has one, by place. `steps` is
    the first input's axis of steps, if it has steps; `lengths` is the place of their numbers."""

    batch: Mapping[int, int]
    steps: int | None = None
    lengths: int | None = None


_LAYOUTS = {
    "GRU": _Recurrent({0: 1, 5: 1}, 0, 4),
    "GRUCell": _Recurrent({0: 0, 1: 0}),
    "GRUSequence": _Recurrent({0: 0, 1: 0}, 1, 2),
    "LSTM": _Recurrent({0: 1, 5: 1, 6: 1}, 0, 4),
    "LSTMCell": _Recurrent({0: 0, 1: 0, 2: 0}),
    "LSTMSequence": _Recurrent({0: 0, 1: 0, 2: 0}, 1, 3),
    "RNN": _Recurrent({0: 1, 5: 1}, 0, 4),
    "RNNCell": _Recurrent({0: 0, 1: 0}),
    "RNNSequence": _Recurrent({0: 0, 1: 0}, 1, 2),
}
"""The recurrent layers of ONNX and of IR."""


@guards(*_LAYOUTS)
def _recurrent(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Recurrent layers: there are a step and a batch, and states and lengths are as many."""
    layout, inputs = _LAYOUTS[node.op], list(node.inputs)
    open = {(0, layout.steps), *layout.batch.items(), (layout.lengths, 0)}
    for place, value in enumerate(inputs):
        dims = enumerate(() if value is None else value.shape or (ANY,))
        if not all(isinstance(dim, int) or (place, axis) in open for axis, dim in dims):
            raise Unsafe("it fails for some values of its open sizes")
    x, lengths = inputs[0], node.input(layout.lengths or 0)
    if x is None or node.attributes.get("layout"):
        raise Unsafe("it fails for some values of its open sizes")
    axes = {layout.batch[0]: 1} | ({} if layout.steps is None else {layout.steps: 1})
    inputs[0] = x = with_at_least(b, x, axes, counts)
    batch = b.sizes(x, layout.batch[0])
    for place, axis in layout.batch.items():
        value = node.input(place)
        if place and value is not None:
            inputs[place] = resized(b, value, axis, batch, counts)
    if layout.lengths is not None and lengths is not None:
        inputs[layout.lengths] = if_taken(b, counts, resized(b, lengths, 0, batch, counts), 1)
    return inputs
