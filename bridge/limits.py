"""The limits of a conversion's cost.

A file of a hundred bytes can ask for any work: functions that call the next one twice, a kernel of
2**33 constants, graphs a million deep. The limits depend on the size of the file, and are checked
before a node or a constant is made. No useful model meets a limit; a user who has one raises it
(`limits={"nodes": ...}`, `--limit nodes=...`).
"""

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any

from bridge.errors import LimitError, UsageError

NODES_PER_NODE = 100
"""Nodes that a conversion may make for each node of the file."""

BYTES_PER_BYTE = 4
"""Bytes of constants that a conversion may make for each byte of the file and its weights."""

FRAMES_PER_GRAPH = 25
"""Calls of Python within one another that a graph in a graph takes, at most."""


@dataclass(frozen=True)
class Limits:
    """The limits, by name; whole numbers above 0. MEANINGS explains each."""

    nodes: int = 50_000
    constants: int = 1 << 28
    depth: int = 1_000
    elements: int = 5_000_000


MEANINGS = {
    "nodes": f"nodes that a conversion makes, or {NODES_PER_NODE} for each of the model's",
    "constants": "bytes of constants that it makes, or "
    f"{BYTES_PER_BYTE} for each byte of the model and its weights",
    "depth": "graphs, or calls of functions, within one another",
    "elements": "elements of an `.xml`, fields of an `.onnx`, or brackets of a text that are read",
}
"""The things that each limit counts."""


DEFAULT = Limits()


class Budget:
    """The nodes and bytes that one conversion has made, and its limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.most_nodes = limits.nodes
        self.most_bytes = limits.constants
        self.nodes = 0
        self.bytes = 0
        self._source_nodes = 0
        self._source_bytes = 0

    def allow(self, nodes: int = 0, size: int = 0) -> None:
        """Adds the size of a source to the limits: nodes, and bytes of files or of tensors."""
        self._source_nodes += nodes
        self._source_bytes += size
        self.most_nodes = max(self.most_nodes, NODES_PER_NODE * self._source_nodes)
        self.most_bytes = max(self.most_bytes, BYTES_PER_BYTE * self._source_bytes)

    def node(self, op: str, name: str) -> None:
        """Counts a new node. Builders and copies of graphs call it: they make many nodes of one."""
        self.nodes += 1
        if self.nodes > self.most_nodes:
            raise LimitError(
                f'{op} "{name}": the conversion makes more than {self.most_nodes} nodes, many '
                f"times those of the file; {_raise('nodes', 2 * self.most_nodes)}"
            )

    def constant(self, size: int, what: str) -> None:
        """Counts `size` bytes of a constant before it is made."""
        self.bytes += size
        if self.bytes > self.most_bytes:
            raise LimitError(
                f"{what}: with its {size} bytes the conversion makes more than {self.most_bytes} "
                f"bytes of constants, many times those of the file; "
                f"{_raise('constants', 2 * self.bytes)}"
            )

    def graph(self, depth: int, where: str) -> None:
        """Refuses a graph, or a function's call, that is nested too deeply."""
        if depth > self.limits.depth:
            raise LimitError(
                f"{where}: lies {depth} graphs deep; {_raise('depth', 2 * self.limits.depth)}"
            )

    def elements(self, count: int, where: str) -> None:
        """Refuses a file that has more elements than may be read."""
        if count > self.limits.elements:
            raise LimitError(
                f"{where}: has more than {self.limits.elements} elements; "
                f"{_raise('elements', 4 * self.limits.elements)}"
            )


def _raise(name: str, number: int) -> str:
    return f'if that is meant, raise the limit: `limits={{"{name}": {number}}}`'


_current: ContextVar[Budget] = ContextVar("budget")
_UNLIMITED = Limits(*(sys.maxsize for _ in fields(Limits)))


def budget() -> Budget:
    """The budget of the running conversion; outside of a conversion, a budget without limits."""
    return _current.get(_NO_BUDGET)


_NO_BUDGET = Budget(replace(_UNLIMITED, depth=DEFAULT.depth))


def read_limits(given: Any) -> Limits:
    """The limits that a user gives by name; UsageError for wrong ones."""
    if given is None:
        return _usual.get()
    if isinstance(given, Limits):
        return given
    names = [field.name for field in fields(Limits)]
    if not isinstance(given, Mapping):
        raise UsageError(f'`limits` map names to numbers, {{"nodes": 1000000}}; they are {given!r}')
    for name, number in given.items():
        if name not in names:
            raise UsageError(f"there is no limit {name!r}; the limits are {', '.join(names)}")
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise UsageError(f"the limit {name} is a whole number above 0, not {number!r}")
    return replace(DEFAULT, **given)


_usual: ContextVar[Limits] = ContextVar("usual", default=DEFAULT)


@contextmanager
def usually(limits: Limits) -> Iterator[None]:
    """Sets the default limits of all conversions in the block. Other work on their models may go
    equally deep."""
    token = _usual.set(limits)
    try:
        with _room_for(limits.depth):
            yield
    finally:
        _usual.reset(token)


@contextmanager
def limited(limits: Limits) -> Iterator[Budget]:
    """Runs the block under `limits`, with room for graphs up to the allowed depth."""
    made = Budget(limits)
    token = _current.set(made)
    try:
        with _room_for(limits.depth):
            yield made
    finally:
        _current.reset(token)


_lock = threading.Lock()
_rooms: list[int] = []


@contextmanager
def _room_for(depth: int) -> Iterator[None]:
    """Lets Python calls nest deeply enough. Python's own limit finds endless recursions, but this
    code has none. The limit holds for all threads."""
    room = min(1_000 + FRAMES_PER_GRAPH * depth, 1 << 30)
    with _lock:
        if not _rooms:
            _rooms.append(sys.getrecursionlimit())
        _rooms.append(room)
        sys.setrecursionlimit(max(_rooms))
    try:
        yield
    finally:
        with _lock:
            _rooms.remove(room)
            sys.setrecursionlimit(max(_rooms))
            if len(_rooms) == 1:
                _rooms.clear()
