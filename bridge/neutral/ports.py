"""Ports of a body: where its inputs come from and where its outputs go."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Invariant:
    """A body input that is the node's input `input`, the same in every iteration."""

    input: int


@dataclass(frozen=True)
class Carried:
    """A body input that starts as the node's input `input`, and then takes the body output `output`
    of the last iteration. `input` None is the constant true, for an absent condition."""

    input: int | None
    output: int


class Parts:
    """Parts of a tensor along an axis, one for each iteration."""

    start: int
    stride: int
    end: int
    part_size: int

    @property
    def are_backwards(self) -> bool:
        """Whether they are all parts, from the last to the first."""
        return (self.start, self.stride, self.end) == (-1, -1, 0)

    @property
    def are_whole(self) -> bool:
        """Whether they are all parts of one element, in either order."""
        forwards = (self.start, self.stride, self.end) == (0, 1, -1)
        return self.part_size == 1 and (forwards or self.are_backwards)


@dataclass(frozen=True)
class Sliced(Parts):
    """A body input that takes one part of the node's input `input` along `axis` per iteration.

    As in IR: parts of `part_size` from `start` to `end`, both inclusive, `stride` apart. Negative
    positions count from the end; a negative stride goes backwards. With `keepdims` the part
    keeps the axis (IR); without, parts have size 1 and the axis is removed (ONNX).
    """

    input: int
    axis: int = 0
    start: int = 0
    stride: int = 1
    end: int = -1
    part_size: int = 1
    keepdims: bool = True


@dataclass(frozen=True)
class Iteration:
    """A body input that is the number of the iteration, from 0."""


@dataclass(frozen=True)
class Yield:
    """A body output that becomes the node's output `output` (of the last iteration, in a Loop);
    None for one that only feeds a Carried input."""

    output: int | None


@dataclass(frozen=True)
class Stacked(Parts):
    """A body output; the values of all iterations are joined along `axis` into the node's output
    `output`. start, stride, end and part_size are as in Sliced. With `keepdims` the values have
    the axis and are concatenated (IR); without, the axis is new and they are stacked (ONNX)."""

    output: int
    axis: int = 0
    start: int = 0
    stride: int = 1
    end: int = -1
    part_size: int = 1
    keepdims: bool = True


@dataclass(frozen=True)
class Condition:
    """A body output that says whether a further iteration runs."""


InputPort = Invariant | Carried | Sliced | Iteration


def outer_input(port: InputPort) -> int | None:
    """The node's input that a body input takes, None if it takes none."""
    return None if isinstance(port, Iteration) else port.input


OutputPort = Yield | Stacked | Condition
