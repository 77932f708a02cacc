"""What OpenVINO's GPU plugin computes wrongly, or not at all, however it is written.

Measured on an emulated device (`tests/gpu/`): see the facts in `docs/devices.md`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.graph import Node
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried
from bridge.operators.control.loop_builder import is_positive
from bridge.targets.counted import is_counted, reads_numbers
from bridge.targets.ended import own_count
from bridge.targets.unroll import trips_of

_HELP = "--value or --input-shape for the inputs that decide it may help, else run it on the CPU"


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
    if own_count(node) is not None or (is_counted(node) and reads_numbers(node)):
        states = [port.output for port in node.body.inputs if isinstance(port, Carried)]
        if len(states) > len({*states}):
            yield f"two of its states become one value, which the GPU plugin has wrong; {_HELP}"
        return
    yield (
        "the GPU plugin has it right in no form: it reads or stacks only some parts, or more than "
        "one at a time; a constant trip count of at most 64 helps (--value), else run it on the CPU"
    )
