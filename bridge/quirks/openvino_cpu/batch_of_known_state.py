"""Recurrent layers with an open batch in the input and a known batch in the initial state.

The CPU plugin gives the state no memory, and does not compile the model.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.known import KnownAt, when_known
from bridge.quirks.quirk import RECURRENT, Place, Quirk, rewriting


def of_known_batch(b: Builder, node: Node, place: Place) -> Result:
    """The layer with its input reshaped to the batch of its state. Both formats require equal
    batches."""
    x, batch = node.inputs[0], _batch_of_states(node)
    if x is None or x.shape is None or isinstance(x.shape[0], int) or batch is None:
        return None
    if all(when_known(state, place) is KnownAt.UNKNOWN for state in _states(node)):
        return None
    x = b.op("Reshape", x, [batch] + [0] * (len(x.shape) - 1))
    inputs = [x, *node.inputs[1:]]
    made = b.node(node.op, inputs, len(node.outputs), node.attributes, extras=node.extras)
    return list(made.outputs)


def _states(node: Node) -> list[Value]:
    """The initial states of a layer."""
    states = node.inputs[1 : 3 if node.op.startswith("LSTM") else 2]
    return [state for state in states if state is not None]


def _batch_of_states(node: Node) -> int | None:
    sizes = (state.shape[0] for state in _states(node) if state.shape)
    return next((size for size in sizes if isinstance(size, int)), None)


def of_open_batch(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The input before the Reshape, if only layers with a state of this batch read it."""
    sizes = known_of(node.inputs[1]).ints or (0,)
    users = uses.users(node.outputs[0])
    if sizes[0] is None or sizes[0] < 1 or any(sizes[1:]) or node.attributes.get("allowzero"):
        return None
    takes = (user.op in RECURRENT and _batch_of_states(user) == sizes[0] for user in users)
    return node.inputs[0] if users and all(takes) else None


QUIRK = Quirk(
    releases="2026.4",
    symptom="A recurrent layer with a constant initial state and an input of open batch does not "
    "compile.",
    fires="At a recurrent layer whose input has an open batch, if its known initial state gives "
    "the batch.",
    safe="Both formats require that input and state have one batch. So the Reshape changes "
    "nothing.",
    cost="a Reshape of the input, which copies nothing",
    run=rewriting(*RECURRENT, by=of_known_batch),
    undo={"Reshape": of_open_batch},
)
