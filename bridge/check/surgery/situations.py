"""What inputs have to show at the nodes of a model, by operator.

A situation is something that must have come about at a node once, or a kind of fault would be
invisible there: both sides of a comparison, numbers close to a bound, a half before a rounding, the
last row of a table, a window that is not whole. This is weak mutation testing (W. Howden, 1982)
with the boundaries of search-based testing. `ROWS` declares the situations of an operator, each row
as nodes that measure how near a run comes to them. Values that depend on constants and fixed sizes
alone have none, and a situation counts once a node, whatever the number of its elements.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.expression import OPPOSITES
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference.indexes import index_range
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition, Iteration, Sliced, outer_input
from bridge.neutral.types import BOOL, F32, I64, TensorType
from bridge.vocabulary import has_trait, operator

_CLOSE = 0.0025
"""Close to a bound are floats that differ from it by this share of the compared numbers."""

_CLOSE_WHOLE = 0.005
"""So are integers, or those that differ by 1."""

_NEVER = 1e-4
"""No nearer: engines round unlike, and decide unlike."""

_FAR = 1e6  # times `_CLOSE`; what is farther counts as if it were there
_ROWS = 512  # of a table, each of which counts
_NODES = 256  # of trees
_BITS = (8, 16, 24, 31, 53)  # of narrower types


@dataclass(frozen=True)
class Situation:
    """Something at a node, `where` it is and what in words. `kind` is a plural for counts. `least`
    is the measure from which on it is met; one that is met `on_grid` counts only if the inputs are
    multiples of 1/64, so that no engine rounds. It depends on the `numbers` of some inputs, and on
    the `sizes` of some. `place` is its place among the measures of a run."""

    where: str
    kind: str
    text: str
    least: float = 1.0
    on_grid: bool = False
    numbers: frozenset[str] = frozenset()
    sizes: frozenset[str] = frozenset()
    place: int = 0

    def far(self, measure: float) -> float:
        """How far a measure is, in steps of its kind: 0 if the situation is met."""
        if measure >= self.least - 1e-4:
            return 0.0
        if measure <= 0:
            return np.inf
        if self.kind in _SIDED:  # from half a unit beyond the bound
            return 0.5 / (measure - 0.5) - 0.5 if measure > 0.5 else 0.49 / measure + 0.5
        return 64 * (self.least - measure) if self.kind == "ranges" else 1 / measure - 1

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


CONDITION = "conditions"
"""The kind of sides of conditions that select elements, as those of an If do branches."""

OVERFLOW = "overflow"
"""The kind of what no input should meet: engines do not agree about it."""

_SIDED = ("close", "thresholds")
"""Kinds of measures that are above 0.5 on the right side."""

Shown = tuple[str, str, float, bool]
"""Kind, text, least measure, and whether it counts on the grid alone."""

Measured = tuple[Value, Sequence[Sequence[Shown]]]
"""A vector of measures, from 0 to 1, and what each shows."""


class Dependences:
    """Of each value of a model on which inputs its numbers depend, and on which inputs' sizes.
    `exact` are values that every engine computes bit by bit, `on_grid` those that it does so for
    inputs of few bits. With `alike` one engine runs all files."""

    def __init__(self, graph: Graph, exact: Set[Value], alike: bool = False) -> None:
        self.alike, self.exact = alike, exact
        self.numbers: dict[Value, frozenset[str]] = {}
        self.sizes: dict[Value, frozenset[str]] = {}
        self.on_grid: set[Value] = {*graph.inputs}
        selects = (node for node in graph.walk() if node.op == "Where")
        self.conditions = {node.operand(0) for node in selects}
        for value in graph.inputs:
            self.numbers[value] = frozenset({value.name})
        self._look(graph)

    def of(self, *values: Value | None) -> tuple[frozenset[str], frozenset[str]]:
        """The inputs whose numbers count for some values, and those whose sizes do."""
        none = frozenset[str]()
        found = [value for value in values if value is not None]
        numbers = none.union(*(self.numbers.get(value, none) for value in found))
        return numbers, none.union(*(self.sizes.get(value, none) for value in found))

    def shape_of(self, value: Value) -> frozenset[str]:
        """The inputs on which the open sizes of a value depend."""
        is_open = value.shape is None or any(not isinstance(dim, int) for dim in value.shape)
        return frozenset.union(*self.of(value)) if is_open else frozenset()

    def of_iterations(self, node: Node) -> tuple[frozenset[str], frozenset[str]]:
        """The inputs on which the number of iterations of a Loop depends."""
        exits = (value for value, port in node.body.exits() if isinstance(port, Condition))
        numbers, sizes = self.of(*node.inputs[:2], *exits)
        for port in node.body.inputs if node.trip_count is None else ():
            value = node.input(port.input) if isinstance(port, Sliced) else None
            sizes |= frozenset() if value is None else self.shape_of(value)
        return numbers, sizes

    def _look(self, graph: Graph) -> None:
        for node in graph.nodes:
            numbers, sizes = self.of(*node.inputs)
            for body in node.bodies:
                every = numbers, sizes
                for value, port in body.entries():
                    at = outer_input(port)
                    is_state = isinstance(port, Carried | Iteration) or at is None
                    its = every if is_state else self.of(node.inputs[at or 0])
                    self.numbers[value], self.sizes[value] = its
                    if is_state or node.inputs[at or 0] in self.on_grid:
                        self.on_grid.add(value)
                self._look(body.graph)
            if node.op in ("Shape", "Size", "ir::ShapeOf"):
                numbers, sizes = frozenset(), self.shape_of(node.operand(0))
            known = known_of(node.outputs[0]) if sizes and not numbers else None
            if known is not None and known.ints is not None:
                sizes = frozenset()
            keeps = node.bodies or node.op in _ON_GRID or has_trait(node.op, "elements_of_first")
            grid = keeps and all(
                v in self.on_grid or not _is_float(v) or _is_short(v) for v in node.inputs if v
            )
            for value in node.outputs:
                self.numbers[value], self.sizes[value] = numbers, sizes
                if grid:
                    self.on_grid.add(value)


_ON_GRID = frozenset(
    {"Add", "Sub", "Mul", "Neg", "Abs", "Min", "Max", "Sum", "Where", "Clip", "Relu", "Concat"}
    | {"ReduceSum", "ReduceMax", "ReduceMin", "Floor", "Ceil", "Round", "Cast", "Sign", "Gather"}
)


def _is_short(value: Value) -> bool:
    """Whether a constant has few numbers, of few bits."""
    tensor = value.constant
    if tensor is None or tensor.size > _ROWS or tensor.element.kind not in ("int", "uint", "float"):
        return tensor is not None and tensor.element is BOOL
    numbers = tensor.array().astype(np.float64) * 64
    return bool(np.all((numbers == np.rint(numbers)) & (np.abs(numbers) < 2**16)))


@dataclass(frozen=True)
class _At:
    """A node with its builder, and what it is made of."""

    b: Builder
    node: Node
    sources: Dependences

    def f32(self, value: Value) -> Value:
        return self.b.cast(value, F32)

    def most(self, measure: Value) -> Value:
        """The largest of measures, 0 of none, as a vector of one."""
        flat = self.b.op("Reshape", measure, [-1])
        zero = self.b.constant(np.zeros(1, np.float32))
        return self.b.op("ReduceMax", self.b.concat(0, flat, zero), [0], keepdims=True)

    def any(self, truth: Value) -> Value:
        """1 if any of truth values is true."""
        return self.most(self.f32(truth))

    def depends(self, *values: Value | None) -> bool:
        return any(self.sources.of(*values))

    def equality(self, *values: Value) -> tuple[bool, bool] | None:
        """Whether numbers are exact on the grid alone; None if they never are."""
        exact, grid = self.sources.exact, self.sources.on_grid
        for on_grid, of in ((False, exact), (True, grid)):
            if all(v in of or v.constant is not None or not _is_float(v) for v in values):
                return on_grid, True
        return None

    def sides(self, a: Value, c: Value, text: str, close: bool = True) -> Iterator[Measured]:
        """Both sides of a comparison, close on both, and equal."""
        b, whole = self.b, not _is_float(a)
        if whole:
            apart = self.f32(b.op("Sub", b.cast(a, I64), b.cast(c, I64)))
        else:
            apart = b.op("Sub", self.f32(a), self.f32(c))
        # Distances from a constant are on a line.
        fixed = [v for v in (a, c) if _number(v)]
        size = b.max(*(b.op("Abs", self.f32(v)) for v in fixed[:1] or (a, c)))
        share, least = (_CLOSE_WHOLE, 1.0) if whole else (_CLOSE, 1e-30)
        units = b.op("Div", apart, b.max(b.op("Mul", size, share), least))
        far = b.min(b.max(b.op("Abs", units), 1.0), _FAR)
        near = b.op("Div", 0.5, far)
        margin = 1e-7 if whole else _NEVER / _CLOSE
        for side, truth in (
            ("above", b.op("Greater", units, margin)),
            ("below", b.op("Less", units, -margin)),
        ):
            measure = b.op("Where", truth, b.op("Add", near, 0.5), b.op("Mul", near, 0.98))
            selects = self.node.outputs[0] in self.sources.conditions and self.sources.of(a, c)[0]
            kind = CONDITION if selects else "sides"
            shown: list[Shown] = [(kind, f"{text}, {side}", 0.5 + 2e-4, False)]
            shown += [("close", f"close {side} {text}", 1.0, False)] if close else []
            yield self.most(measure), [shown]
        equal = self.equality(a, c)
        if equal is not None:
            is_same = b.op("Where", b.op("Equal", apart, 0.0), 1.0, near)
            yield self.most(is_same), [[("equal", f"equal: {text}", 1.0, equal[0])]]

    def nearest(self, apart: Value) -> Value:
        """1 where a number that is not negative is 0, less where it is larger."""
        return self.most(self.b.op("Div", 1.0, self.b.op("Add", apart, 1.0)))


Row = Callable[[_At, Node], Iterator[Measured]]


def _comparison(at: _At, node: Node) -> Iterator[Measured]:
    a, c = node.operands[:2]
    kind = a.element.kind if a.element else ""
    if kind not in ("int", "uint", "float") or not at.depends(a, c):
        return
    known = [known_of(v).ints for v in (a, c)]
    only_sizes = not at.sources.of(a, c)[0]
    if only_sizes and any(k is not None and max(k, default=0) < 1 for k in known):
        return  # no size is negative
    zero = any(_number(v) == 0.0 for v in (a, c))
    yield from at.sides(a, c, _against(node.op, a, c), close=not zero or not _is_float(a))


def _against(op: str, a: Value, c: Value) -> str:
    known = [n for n in map(_number, (c, a)) if n is not None]
    return f"{known[0]:g}" if known else op


def _bounds(at: _At, node: Node) -> Iterator[Measured]:
    """Clip, and Min and Max with a constant."""
    data = next((v for v in node.operands if v.constant is None), None)
    if data is None or not at.depends(data):
        return
    for bound in node.inputs:
        number = None if bound is None else _number(bound)
        if bound is not None and number is not None and abs(number) < 1e30:
            is_size = not at.sources.of(data)[0]
            if not (is_size and number < 1):
                yield from at.sides(data, bound, f"{number:g}", close=number != 0)


def _rounding(at: _At, node: Node) -> Iterator[Measured]:
    """Halves towards both neighbours, whole numbers, and numbers below 0."""
    data, b = node.operand(0), at.b
    element = node.outputs[0].element
    if not _is_float(data) or not at.depends(data):
        return
    if node.op == "Cast" and (element is None or not element.is_integer):
        return
    x = at.f32(data)
    exact = at.equality(data)
    if node.op == "Round" and exact is not None:
        yield from _halves(at, x, exact[0])
    low = b.op("Floor", x)
    part = b.op("And", b.op("Less", x, 0.0), b.op("Greater", b.op("Sub", x, low), _NEVER))
    yield at.any(part), [[("signs", "a negative number that is not whole", 1.0, False)]]
    if exact is not None and node.op in ("Floor", "Ceil", "Cast"):
        yield at.any(b.op("Equal", x, low)), [[("ties", "a whole number", 1.0, exact[0])]]
    if node.op == "Cast":
        yield from _magnitude(at, x, 64)


def _halves(at: _At, x: Value, on_grid: bool) -> Iterator[Measured]:
    b = at.b
    low = b.op("Floor", x)
    apart = b.op("Abs", b.op("Sub", b.op("Sub", x, low), 0.5))
    is_even = b.op("Equal", b.op("Floor", b.op("Mul", low, 0.5)), b.op("Mul", low, 0.5))
    for text, truth in (("down", is_even), ("up", b.op("Not", is_even))):
        near = b.op("Where", truth, apart, 1.0)
        yield at.nearest(near), [[("ties", f"a half that goes {text} to even", 1.0, on_grid)]]


def _magnitude(at: _At, x: Value, most: int) -> Iterator[Measured]:
    """Numbers beyond narrower types, and beyond those that engines hold."""
    size = at.b.op("Log", at.b.op("Add", at.b.op("Abs", x), 1.0))
    measure = at.b.min(at.b.op("Mul", size, 1 / (64 * np.log(2))), 1.0)
    agreed = min(most, 54 if at.sources.alike else 31)
    kinds = [
        ("ranges" if n < agreed else OVERFLOW, f"a number beyond {n} bits", n / 64 + 3e-4, False)
        for n in _BITS
        if n < most
    ]
    yield at.most(measure), [kinds]


def _quantized(at: _At, node: Node) -> Iterator[Measured]:
    data, scale, zero = node.operand(0), node.operand(1), node.input(2)
    element, scales = node.outputs[0].element, _numbers(scale)
    if scales is None or not at.depends(data) or element is None or not element.is_integer:
        return
    rank, axis = data.rank, node.attributes.get("axis", 1)
    if scales.ndim == 1 and scales.size > 1:
        if rank is None or node.attributes.get("block_size"):
            return
        scales = scales.reshape([-1 if place == axis % rank else 1 for place in range(rank)])
    elif scales.size != 1:
        return
    x = at.b.op("Div", at.f32(data), at.b.constant(scales.astype(np.float32)))
    exact = at.equality(data)
    if exact is not None and np.all(np.frexp(scales)[0] == 0.5):
        yield from _halves(at, x, exact[0])
    start = _number(zero) if zero is not None else 0.0
    if start is not None and element.bits <= 16:
        for end, text in zip(element.bounds, ("lowest", "highest"), strict=True):
            bound = at.b.constant(np.array(end - start, np.float32))
            yield from at.sides(x, bound, f"the {text} level", close=False)


def _integers(at: _At, node: Node) -> Iterator[Measured]:
    """Arithmetic on integers: rests of a division, numbers beyond narrower types."""
    first = node.operand(0)
    if first.element is None or not first.element.is_integer or not at.depends(*node.inputs):
        return
    divisor = _number(node.operand(1)) if node.op in ("Div", "Mod") else None
    if divisor is not None and 1 < divisor <= 4096:
        rest = at.f32(at.b.op("Mod", at.b.cast(first, I64), int(divisor)))
        for wanted in dict.fromkeys((0, 1, int(divisor) - 1)):
            apart = at.b.op("Abs", at.b.op("Sub", rest, float(wanted)))
            shown = [("sizes", f"rest {wanted} of a division by {divisor:g}", 1.0, False)]
            yield at.nearest(apart), [shown]
    if node.op == "Mul" and at.sources.of(*node.inputs)[0]:
        yield from _magnitude(at, at.f32(node.outputs[0]), first.element.bits)


def _tie(at: _At, node: Node) -> Iterator[Measured]:
    """Two elements that are the best."""
    data, b = node.operand(0), at.b
    exact = at.equality(data)
    if exact is None or not at.depends(data) or data.element is BOOL:
        return
    axis = node.attributes.get("axis", -1 if node.op.endswith("TopK") else 0)
    least = node.op == "ArgMin" or node.attributes.get("largest") is False
    x = at.f32(data)
    best = b.op("ReduceMin" if least else "ReduceMax", x, [axis], keepdims=True)
    apart = b.op("Abs", b.op("Sub", x, best))
    count = b.op("ReduceSum", at.f32(b.op("Equal", apart, 0.0)), [axis], keepdims=False)
    yield at.any(b.op("Greater", count, 1.5)), [[("ties", "a tie at the top", 1.0, exact[0])]]


def _windows(at: _At, node: Node) -> Iterator[Measured]:
    """A last window that is whole, and one that is not."""
    data = node.operand(0)
    strides, dims = node.attributes.get("strides") or (), data.shape or ()
    weights = node.input(1)
    kernel = node.attributes.get("kernel_shape") or (
        weights.shape[2:] if weights is not None and weights.shape else ()
    )
    spatial = len(dims) - 2
    if len(strides) != spatial or len(kernel) != spatial or not at.sources.shape_of(data):
        return
    pads = node.attributes.get("pads") or (0,) * (2 * spatial)
    dilations = node.attributes.get("dilations") or (1,) * spatial
    for place, (stride, size) in enumerate(zip(strides, kernel, strict=True)):
        axis = place + 2
        if isinstance(dims[axis], int) or stride < 2 or not isinstance(size, int):
            continue
        around = pads[place] + pads[place + spatial] - ((size - 1) * dilations[place] + 1)
        length = at.b.op("Shape", data, start=axis, end=axis + 1)
        rest = at.f32(at.b.op("Mod", at.b.op("Add", length, around % stride), stride))
        text = f"a last window of axis {axis} that is"
        yield at.nearest(rest), [[("windows", f"{text} whole", 1.0, False)]]
        other = at.b.op("Abs", at.b.op("Sub", rest, float(stride - 1)))
        yield at.nearest(other), [[("windows", f"{text} not whole", 0.5, False)]]


def _slices(at: _At, node: Node) -> Iterator[Measured]:
    """Sizes around the constants that open axes are cut at, and around the lengths of tables."""
    data, ends = node.operand(0), node.operand(2)
    axes = known_of(node.input(3)).ints if node.input(3) is not None else None
    known = known_of(ends).ints
    if known is not None and at.sources.shape_of(data) and data.shape is not None:
        for place, end in enumerate(known):
            axis = axes[place] if axes else place
            if 0 < end < 2**31 and not isinstance(data.shape[axis], int):
                start = axis % len(data.shape)
                length = at.b.op("Shape", data, start=start, end=start + 1)
                yield from at.sides(length, at.b.constant([end]), f"size {end}")
    elif data.constant is not None and at.depends(ends) and ends.shape == (1,) and axes:
        rows = data.constant.shape[axes[0]]
        yield from at.sides(ends, at.b.constant([rows]), f"{rows} rows")


def _table(at: _At, node: Node) -> Iterator[Measured]:
    """The rows of a table, each, or the first and the last."""
    row = operator(node.op)
    for position in row.indexes if row is not None else ():
        places, found = node.input(position), index_range(node, position)
        sizes = () if found is None else found.sizes
        if places is None or not at.depends(places) or len(sizes) != 1:
            continue
        (rows,) = sizes
        if not isinstance(rows, int) or rows < 2:
            continue
        flat = at.b.op("Reshape", at.f32(places), [-1])
        name = next((v.name for v in node.inputs if v is not None and v.constant is not None), "")
        rows_shown = range(rows) if rows <= _ROWS else (0, rows // 2, rows - 1)
        wanted = at.b.constant(np.array([[n] for n in rows_shown], np.float32))
        apart = at.b.op("Abs", at.b.op("Sub", at.b.op("Unsqueeze", flat, [0]), wanted))
        none = at.b.constant(np.full((len(rows_shown), 1), 1e6, np.float32))
        near = at.b.op("ReduceMin", at.b.concat(1, apart, none), [1], keepdims=False)
        of = f' of "{name}"' if name else ""
        yield (
            at.b.op("Div", 1.0, at.b.op("Add", near, 1.0)),
            [[(f"rows{of}", f"row {n}{of}", 1.0, False)] for n in rows_shown],
        )


def _paths(node: Node, inner: Sequence[int]) -> np.ndarray:
    """For each inner node of trees, a column: 1 where the way to it takes the first branch of
    another, -1 where it takes the second."""
    trees, ids = node.attributes["nodes_treeids"], node.attributes["nodes_nodeids"]
    place = {key: i for i, key in enumerate(zip(trees, ids, strict=True))}
    column = {node_place: n for n, node_place in enumerate(inner)}
    ways: dict[int, list[tuple[int, float]]] = {}
    for i in inner:  # parents come before their children in files that somebody wrote
        for name, sign in (("nodes_truenodeids", 1.0), ("nodes_falsenodeids", -1.0)):
            child = place.get((trees[i], node.attributes[name][i]))
            if child is not None and child != i:
                ways[child] = [*ways.get(i, []), (column[i], sign)]
    path = np.zeros((len(inner), len(inner)), np.float32)
    for i in inner:
        for n, sign in ways.get(i, ()):
            path[n, column[i]] = sign
    return path


def _trees(at: _At, node: Node) -> Iterator[Measured]:
    """The thresholds of trees on the way to a leaf: both sides, close on both, and equal."""
    of, data, b = node.attributes, node.operand(0), at.b
    modes, ids, values = of["nodes_modes"], of["nodes_nodeids"], of["nodes_values"]
    columns = data.shape[-1] if data.shape else None
    if not modes or values is None or not isinstance(columns, int) or not at.depends(data):
        return
    inner = [i for i, mode in enumerate(modes) if mode != "LEAF"][:_NODES]
    if not inner:
        return
    path = _paths(node, inner)
    x = b.op("Reshape", at.f32(data), [-1, columns])
    features = b.constant([of["nodes_featureids"][i] for i in inner])
    limits = np.array([values[i] for i in inner], np.float32)
    apart = b.op("Sub", b.op("Gather", x, features, 1), limits[None])
    taken = {
        "BRANCH_LEQ": b.op("LessOrEqual", apart, 0.0), "BRANCH_LT": b.op("Less", apart, 0.0),
        "BRANCH_GTE": b.op("GreaterOrEqual", apart, 0.0), "BRANCH_GT": b.op("Greater", apart, 0.0),
        "BRANCH_EQ": b.op("Equal", apart, 0.0),
    }  # fmt: skip
    mode = modes[inner[0]]
    if mode not in taken or any(modes[i] != mode for i in inner):
        return
    sign = b.op("Where", taken[mode], 1.0, -1.0)
    met = b.op("MatMul", sign, b.constant(path))
    gets_there = b.op("Sub", np.abs(path).sum(0)[None].astype(np.float32), met)  # 2 a wrong turn
    away = b.op("Div", 1.0, b.op("Add", gets_there, 1.0))
    unit = np.maximum(np.abs(limits) * _CLOSE, 1e-6)[None].astype(np.float32)
    units = b.op("Div", apart, unit)
    near = b.op("Div", 0.5, b.min(b.max(b.op("Abs", units), 1.0), _FAR))
    nothing = b.constant(np.zeros((1, len(inner)), np.float32))
    margin = _NEVER / _CLOSE
    for text, truth in (
        ("above", b.op("Greater", units, margin)),
        ("below", b.op("Less", units, -margin)),
        ("at", b.op("Equal", apart, 0.0)),
    ):
        measure = b.op("Where", truth, b.op("Add", near, 0.5), b.op("Mul", near, 0.98))
        every = b.concat(0, b.op("Mul", measure, away), nothing)
        kind = "thresholds"
        shown = [
            [(kind, f"{'close ' if text != 'at' else ''}{text} {values[i]:g} (node {ids[i]})", 1.0,
              False)]
            for i in inner
        ]  # fmt: skip
        if text != "at" or at.equality(data) is not None:
            yield b.op("ReduceMax", every, [0], keepdims=False), shown


def _suppression(at: _At, node: Node) -> Iterator[Measured]:
    """Scores around their threshold, and overlaps around theirs of boxes whose scores count."""
    if not at.depends(*node.inputs[:2]) or node.input(2) is None:
        return
    b, most = at.b, at.b.op("Reshape", at.b.cast(node.operand(2), I64), [1])
    is_room = b.op("LessOrEqual", b.op("Shape", node.operand(0), start=1, end=2), most)
    # The overlaps of many boxes would fill the memory, and many boxes fill the count.
    boxes = b.cut(node.operand(0), 1, 0, _ROWS)
    scores = b.cut(node.operand(1), 2, 0, _ROWS)
    overlap, least = _number(node.input(3)), _number(node.input(4))
    if least is not None and least > 0:
        limit = b.constant(np.array(least, np.float32))
        yield from at.sides(scores, limit, f"the least score {least:g}")
    if overlap is None or not overlap > 0:
        return
    corners = b.ops("Split", 2, at.f32(boxes), b.constant([2, 2]), axis=2)
    if node.attributes.get("center_point_box"):
        half = b.op("Mul", corners[1], 0.5)
        corners = [b.op("Sub", corners[0], half), b.op("Add", corners[0], half)]
    first, last = b.min(*corners), b.max(*corners)

    def area(low: Value, high: Value) -> Value:
        sides = b.max(b.op("Sub", high, low), 0.0)
        return b.op("ReduceProd", sides, [-1], keepdims=False)

    rows, columns = ([b.op("Unsqueeze", v, [n]) for v in (first, last)] for n in (2, 1))
    shared = area(b.max(rows[0], columns[0]), b.min(rows[1], columns[1]))
    own = area(first, last)
    both = b.op("Add", b.op("Unsqueeze", own, [2]), b.op("Unsqueeze", own, [1]))
    share = b.op("Div", shared, b.max(b.op("Sub", both, shared), 1e-12))
    # The best box of a class is never suppressed.
    best = b.op("Equal", scores, b.op("ReduceMax", scores, [2], keepdims=True))
    counts = b.op("Greater", scores, b.constant(np.array(least or -1e30, np.float32)))
    others = b.op("And", b.op("And", counts, is_room), b.op("Not", best))
    pairs = b.op("And", b.op("Unsqueeze", best, [3]), b.op("Unsqueeze", others, [2]))
    decides = b.op("Where", pairs, b.op("Unsqueeze", share, [1]), 0.0)
    limit = b.constant(np.array(overlap, np.float32))
    yield from at.sides(decides, limit, f"the overlap {overlap:g}")


ROWS: Mapping[str, Row] = {
    **dict.fromkeys(OPPOSITES, _comparison),
    **dict.fromkeys(("Clip", "Min", "Max"), _bounds),
    **dict.fromkeys(("Round", "Floor", "Ceil", "Cast"), _rounding),
    "QuantizeLinear": _quantized,
    **dict.fromkeys(("Div", "Mod", "Mul"), _integers),
    **dict.fromkeys(("ArgMax", "ArgMin", "TopK", "ir::TopK"), _tie),
    **dict.fromkeys(("Conv", "MaxPool", "AveragePool", "LpPool", "ConvInteger"), _windows),
    "Slice": _slices,
    "NonMaxSuppression": _suppression,
    **dict.fromkeys(
        ("ai.onnx.ml::TreeEnsembleRegressor", "ai.onnx.ml::TreeEnsembleClassifier"), _trees
    ),
    **dict.fromkeys(("Gather", "OneHot", "ir::OneHot"), _table),
}
"""The situations of operators."""


def measure(
    b: Builder, node: Node, where: str, sources: Dependences
) -> Iterator[tuple[Value, list[tuple[Situation, ...]]]]:
    """How near a node comes to its situations, as vectors, and what each element stands for."""
    row = ROWS.get(node.op)
    if row is None or any(not isinstance(v.type, TensorType) for v in node.inputs if v is not None):
        return
    numbers, by_number = sources.of(*node.inputs)
    data = node.input(0)
    sizes = by_number | (sources.shape_of(data) if data is not None else frozenset())
    for value, shown in row(_At(b, node, sources), node):
        yield (
            value,
            [
                tuple(
                    Situation(where, kind, text, least, on_grid, numbers, sizes)
                    for kind, text, least, on_grid in some
                )
                for some in shown
            ],
        )


def _number(value: Value | None) -> float | None:
    """The number of a constant that has only one."""
    tensor = None if value is None else value.constant
    if tensor is None or tensor.size != 1 or tensor.element.kind not in ("int", "uint", "float"):
        return None
    return float(tensor.array().reshape(()))


def _numbers(value: Value) -> np.ndarray | None:
    """The numbers of a small constant."""
    tensor = value.constant
    return None if tensor is None or tensor.size > _ROWS else tensor.array().astype(np.float64)


def _is_float(value: Value) -> bool:
    return value.element is not None and value.element.is_float
