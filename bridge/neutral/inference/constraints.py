"""Constraints on the inputs of a node, declared once beside the operator's inference.

    from bridge.neutral.inference import constraints as must

    def inner_sizes(node: Node) -> must.Constraints:
        a, b = must.operands(node, 2)
        yield must.Same(a[-1], b[-2], "{} and {} cannot be multiplied", a, b)

    must.hold("MatMul", inner_sizes)

From one declaration follow the reason why a node cannot run (`contradiction`), the equal sizes of
its inputs (`equal_sizes`), and the ranks of its inputs and outputs (`rank_constraints`). For an
operator's own arithmetic a check yields a text if the node contradicts itself.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference import load_operator
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, Dim, Shape, differ, format_shape
from bridge.vocabulary import has_trait


class Operand:
    """An input or output of a node in a declaration. `x[-1]` is a dimension, open if it is not
    known; `str(x)` is its shape."""

    def __init__(self, value: Value | None) -> None:
        self.value = value
        self.shape: Shape = None if value is None else value.shape

    @property
    def rank(self) -> int | None:
        """The number of axes, None if it is unknown."""
        return None if self.shape is None else len(self.shape)

    def __getitem__(self, axis: int) -> Dim:
        shape = self.shape or ()
        return shape[axis] if -len(shape) <= axis < len(shape) else ANY

    def __str__(self) -> str:
        return format_shape(self.shape)


class Reasoned:
    """A constraint, and `why` it may not be broken, with `about` in its places. Without a reason a
    node that breaks it is not refused."""

    def __init__(self, holds: bool, why: str, about: tuple[object, ...]) -> None:
        self.holds, self.why, self.about = holds, why, about

    def broken(self) -> str:
        """Why this does not hold; "" if it may."""
        return "" if self.holds else self.why.format(*self.about)


class Same(Reasoned):
    """Two sizes are equal."""

    def __init__(self, one: Dim, other: Dim, why: str, *about: object) -> None:
        super().__init__(not differ(one, other), why, about)
        self.one, self.other = one, other


class Rank(Reasoned):
    """A value has exactly one rank."""

    def __init__(self, operand: Operand, rank: int, why: str = "", *about: object) -> None:
        super().__init__(operand.rank in (None, rank), why, about)
        self.operand, self.rank = operand, rank


class Ranks(Reasoned):
    """The rank of `one` is the rank of `other` plus `more`; with `scalars`, a scalar gives a
    scalar."""

    def __init__(
        self,
        one: Operand,
        other: Operand,
        more: int = 0,
        why: str = "",
        *about: object,
        scalars: bool = False,
    ) -> None:
        have, wanted = one.rank, None if other.rank is None else other.rank + more
        super().__init__(have is None or wanted in (None, have), why, about)
        self.one, self.other, self.more, self.scalars = one, other, more, scalars


class Broadcast(Reasoned):
    """Values are broadcast against each other (ONNX, Multidirectional Broadcasting)."""

    def __init__(self, values: Sequence[Value | None]) -> None:
        self.shapes = [shape for value in values if value is not None and (shape := value.shape)]
        sizes: dict[int, int] = {}
        holds = self.shapes[1:] == self.shapes[:-1] or all(
            not isinstance(dim, int) or dim == 1 or sizes.setdefault(place, dim) == dim
            for shape in self.shapes
            for place, dim in enumerate(reversed(shape))
        )
        super().__init__(holds, "{} cannot be broadcast together", (Shapes(values),))


class Count(Reasoned):
    """Each element of `counted` is the sum of two sizes, plus `more`. A node that breaks this may
    run, but its output has no meaning."""

    def __init__(self, counted: Value | None, sizes: tuple[Dim, Dim], more: int = 0) -> None:
        super().__init__(True, "", ())
        self.counted, self.sizes, self.more = counted, sizes, more


class Double(Reasoned):
    """A size is twice another."""

    def __init__(self, whole: Dim, half: Dim, why: str, *about: object) -> None:
        known = isinstance(whole, int) and isinstance(half, int)
        super().__init__(not known or whole == 2 * half, why, about)  # type: ignore[operator]
        self.whole, self.half = whole, half


class Sum(Reasoned):
    """A size is the sum of two others. A node that breaks this may run, but not in all engines."""

    def __init__(self, whole: Dim, one: Dim, other: Dim) -> None:
        super().__init__(True, "", ())
        self.whole, self.one, self.other = whole, one, other


class Least(Reasoned):
    """A size is at least so large. A node that breaks this may not run in all engines."""

    def __init__(self, size: Dim, least: int) -> None:
        super().__init__(True, "", ())
        self.size, self.least = size, least


@dataclass(eq=False)
class Shapes:
    """The shapes of the present values, for a reason. The text is made when the reason is shown."""

    values: Sequence[Value | None]

    def __str__(self) -> str:
        return " and ".join(format_shape(value.shape) for value in self.values if value is not None)


Constraints = Iterator[str | Reasoned]
"""A condition on a node, or a text that says why the node cannot run."""

Check = Callable[[Node], Constraints]

_checks: dict[str, tuple[Check, ...]] = {}


def hold(ops: str | tuple[str, ...], *checks: Check) -> None:
    """Declares constraints on the nodes of operators. The first broken one gives the reason."""
    for op in (ops,) if isinstance(ops, str) else ops:
        if op in _checks:
            raise ValueError(f"the constraints of {op} are declared twice")
        _checks[op] = checks


@cache
def _checks_of(op: str) -> tuple[Check, ...]:
    load_operator(op)
    return (broadcasts,) if has_trait(op, "broadcasts") else _checks.get(op, ())


def _constraints(node: Node) -> Constraints:
    for check in _checks_of(node.op):
        yield from check(node)


def constrained() -> dict[str, tuple[Check, ...]]:
    """The checks of every operator that has been imported."""
    return dict(_checks)


# The consequences of a declaration.


def contradiction(node: Node) -> str:
    """Why the known shapes of a node's inputs do not go together; "" if they may."""
    for check in _checks_of(node.op):
        for fault in check(node):
            if why := fault if isinstance(fault, str) else fault.broken():
                return why
    return ""


def contradictions(graph: Graph) -> dict[Node, str]:
    """The nodes of a graph, and of its bodies, that contradict themselves, with the reasons."""
    nodes = (node for node in graph.walk() if _checks_of(node.op))
    return {node: why for node in nodes if (why := contradiction(node))}


def equal_sizes(node: Node) -> Iterator[tuple[Dim, Dim]]:
    """Sizes of a node's inputs that are equal."""
    for constraint in _constraints(node):
        if isinstance(constraint, Same):
            yield constraint.one, constraint.other


def sizes_that_suit(node: Node) -> Iterator[tuple[Dim, Dim]]:
    """Pairs of sizes of a node's inputs: equal, or one of them is 1."""
    for constraint in _constraints(node):
        if isinstance(constraint, Broadcast):
            for a, b in pairwise(constraint.shapes):
                pairs = zip(reversed(a), reversed(b), strict=False)
                yield from (pair for pair in pairs if 1 not in pair)


def counts(node: Node) -> Iterator[Count]:
    """Inputs of a node that hold counts of another input's elements."""
    return (constraint for constraint in _constraints(node) if isinstance(constraint, Count))


def doubles(node: Node) -> Iterator[Double]:
    """Pairs of sizes of a node's inputs: the first is twice the second."""
    return (constraint for constraint in _constraints(node) if isinstance(constraint, Double))


def sums(node: Node) -> Iterator[Sum]:
    """Sizes of a node's inputs that are the sum of two others."""
    return (found for found in _constraints(node) if isinstance(found, Sum))


def least_sizes(node: Node) -> Iterator[tuple[Dim, Dim]]:
    """Sizes of a node's inputs, each with the least that it may be."""
    for constraint in _constraints(node):
        if isinstance(constraint, Least):
            yield constraint.size, constraint.least


RankRelation = tuple[Value, Value, int, bool]
"""(a, b, k, scalars): the rank of a is the rank of b plus k; with `scalars`, a scalar b gives a
scalar a."""

RankDemand = tuple[Value, int]
"""A value, and the one rank that it can have."""


def rank_constraints(node: Node) -> tuple[list[RankRelation], list[RankDemand]]:
    """How the ranks of a node's inputs and outputs go together, and inputs that have one rank."""
    relations: list[RankRelation] = []
    demands: list[RankDemand] = []
    if has_trait(node.op, "keeps_rank") and node.inputs[0] is not None:
        relations.append((node.outputs[0], node.inputs[0], 0, False))
    if has_trait(node.op, "broadcasts"):
        return relations, demands
    for constraint in _constraints(node):
        if isinstance(constraint, Ranks):
            one, other = constraint.one.value, constraint.other.value
            if one is not None and other is not None:
                relations.append((one, other, constraint.more, constraint.scalars))
        elif isinstance(constraint, Rank) and constraint.operand.value is not None:
            demands.append((constraint.operand.value, constraint.rank))
    return relations, demands


def operands(node: Node, count: int) -> list[Operand]:
    """The first `count` inputs, absent ones included."""
    return [Operand(node.input(index)) for index in range(count)]


# Whole checks: common constraints on an attribute or an input.


def broadcasts(node: Node) -> Constraints:
    """All inputs are broadcast against each other."""
    yield Broadcast(node.inputs)


def fewer_axes(out: Operand, x: Operand, axes: Sequence[int], scalars: bool) -> Constraints:
    """`out` has the axes of `x` without these. Their number is certain if each is there once and
    all count from one end: 0 and -1 are one axis of a vector, and two of a matrix."""
    if len({axis < 0 for axis in axes}) == 1 and len(set(axes)) == len(axes):
        yield Ranks(out, x, -len(axes), scalars=scalars)


def has_rank(least: int, most: int = 1 << 30, of: int = 0) -> Check:
    """The rank of an input."""
    wanted = str(least) if least == most else f"{least} or {'more' if most > 3 else most}"
    why = f"its input {of} is {{}}, not of rank {wanted}"

    def check(node: Node) -> Constraints:
        operand = Operand(node.input(of))
        if least == most:
            yield Rank(operand, least, why, operand)
        elif operand.rank is not None and not least <= operand.rank <= most:
            yield why.format(operand)

    return check


def have_ranks(*wanted: int) -> tuple[Check, ...]:
    """The ranks of the first inputs."""
    return tuple(has_rank(each, each, index) for index, each in enumerate(wanted))


def axis_attribute(name: str, more: int = 0) -> Check:
    """Checks an attribute with one or several axes of input 0. `more` is added to its rank."""

    def check(node: Node) -> Constraints:
        axis = node.attributes.get(name)
        axes = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
        yield from _outside(Operand(node.input(0)), axes, more)

    return check


def axes_in(index: int) -> Check:
    """An input that holds axes of input 0, if it is known."""

    def check(node: Node) -> Constraints:
        yield from integral(node.input(index))
        yield from _outside(Operand(node.input(0)), known_of(node.input(index)).ints or ())

    return check


def integral(value: Value | None) -> Iterator[str]:
    """An input that holds axes is of integers."""
    if value is not None and value.element is not None and value.element.kind not in _INTEGERS:
        yield f"its axes are {value.element}"


_INTEGERS = ("int", "uint")


def _outside(x: Operand, axes: Sequence[int], more: int = 0) -> Iterator[str]:
    if x.shape is None:
        return
    count = max(len(x.shape), 1) + more  # a scalar's axis may be called 0
    for axis in axes:
        if not -count <= axis < count:
            yield f"{x} has no axis {axis}"


def not_negative(index: int) -> Check:
    """An input that holds sizes or repeats."""

    def check(node: Node) -> Constraints:
        known = known_of(node.input(index)).ints
        if known is not None and min(known, default=0) < 0:
            yield f"its input {index} is {list(known)}"

    return check


def one_element(*indices: int) -> Check:
    """Inputs that have one element."""

    def check(node: Node) -> Constraints:
        for index in indices:
            shape = Operand(node.input(index)).shape
            if shape is not None and any(isinstance(dim, int) and dim != 1 for dim in shape):
                yield f"its input {index} is one number, not {format_shape(shape)}"

    return check


def multiple(dim: Dim, of: int) -> bool:
    """Whether a dimension may be so many equal parts, one at least."""
    return of > 0 and (not isinstance(dim, int) or dim % of == 0)
