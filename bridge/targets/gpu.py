"""What OpenVINO's GPU plugin computes wrongly, or not at all, however it is written.

Measured on an emulated device (`tests/gpu/`): see the facts in `docs/devices.md`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.graph import Node
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition
from bridge.neutral.types import Shape
from bridge.operators.control.loop_builder import is_positive
from bridge.targets.counted import is_counted, reads_numbers
from bridge.targets.unroll import trips_of

_HELP = "`values` or `input_shapes` for the inputs that decide it may help, else run it on the CPU"


def faults_of(node: Node) -> Iterator[str]:
    """Why the plugin cannot be trusted with a node."""
    if node.op == "Loop":
        yield from _of_loop(node)
    if node.op == "Col2Im" and known_of(node.input(1)).ints is None:
        yield f"OpenVINO's GPU plugin wants a constant size of the image; {_HELP}"


def _of_loop(node: Node) -> Iterator[str]:
    first = node.condition
    starts = first is None or is_positive(first)
    if is_counted(node) and starts and trips_of(node) is not None:
        return  # The plugin unrolls it.
    if is_counted(node) and reads_numbers(node):
        states = [port.output for port in node.body.inputs if isinstance(port, Carried)]
        if len(states) > len({*states}):
            yield f"two of its states become one value, which the GPU plugin has wrong; {_HELP}"
        for name in _changing(node):
            yield f'the size of its state "{name}" may change, which the GPU plugin misses; {_HELP}'
        return
    yield (
        "a computed condition ends it, and the GPU plugin may run an iteration less; a constant "
        "trip count of at most 64 helps (`values`), else run it on the CPU"
    )


def _changing(node: Node) -> Iterator[str]:
    """The states whose sizes may change."""
    body = node.body
    for value, port in body.entries():
        if not isinstance(port, Carried) or isinstance(body.outputs[port.output], Condition):
            continue
        again = body.graph.outputs[port.output]
        if again is not value and not _are_same(value.shape, again.shape):
            yield value.name


def _are_same(one: Shape, other: Shape) -> bool:
    return (
        one is not None
        and other is not None
        and len(one) == len(other)
        and all(a == b and isinstance(a, int | str) for a, b in zip(one, other, strict=True))
    )
