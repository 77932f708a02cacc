"""Graphs of nested If, Loop and Scan under construction. They are valid, and every engine can run
them.

Values keep what later choices need to know: element type, shape, a bound of their magnitude and how
many fractional bits they have. The last two keep the arithmetic from blowing up and the decisions
(comparisons, Floor, casts to integers) away from numbers that engines round differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

Draw = Callable[[st.SearchStrategy[Any]], Any]
Dim = int | str | None  # a size, a symbol of the graph's inputs, or not known

ELEMENTS = {
    "f32": (TensorProto.FLOAT, np.float32),
    "i64": (TensorProto.INT64, np.int64),
    "bool": (TensorProto.BOOL, np.bool_),
    "i32": (TensorProto.INT32, np.int32),
    "f64": (TensorProto.DOUBLE, np.float64),
    "f16": (TensorProto.FLOAT16, np.float16),
    "u8": (TensorProto.UINT8, np.uint8),
    "i8": (TensorProto.INT8, np.int8),
    "i16": (TensorProto.INT16, np.int16),
    "u16": (TensorProto.UINT16, np.uint16),
    "u32": (TensorProto.UINT32, np.uint32),
    "u64": (TensorProto.UINT64, np.uint64),
}
FLOATS = ("f32", "f64")
INTEGERS = ("i64", "i32")
NUMBERS = FLOATS + INTEGERS
SIGNED = ("i8", "i16")
UNSIGNED = ("u8", "u16", "u32", "u64")
TEXT, WORD = "text", "word"
TEXTS = {TEXT: (TensorProto.STRING, np.object_), WORD: (TensorProto.STRING, np.object_)}
"""`TEXT` is any string, for example an input of the program; `WORD` is one of `WORDS` (`texts.py`).
"""
WORDS = ("red", "blue", "", "pink", "7", "red blue", "-2", "é", "a,b", "<x>")
TYPES = ELEMENTS | TEXTS
OTHERS = SIGNED + UNSIGNED
"""Integers that move, are joined and converted. Few engines compute with them."""

MAX_BOUND = 16.0
MAX_BITS = 6
MAX_DEPTH = 3
MAX_TRIPS = 3
BODY_STATEMENTS = 3
# No tensor has more elements: ranks and sizes are small and concatenation is limited.
MAX_ELEMENTS = 256


@dataclass(frozen=True)
class Var:
    """A value that nodes may read.

    `bits` counts the fractional bits of a float if every engine computes it alike, else None. The
    content of `fed` values surely depends on the program's inputs.
    """

    name: str
    element: str
    shape: tuple[Dim, ...]
    bound: float = 1.0
    bits: int | None = 0
    fed: bool = False

    @property
    def is_fixed(self) -> bool:
        return all(isinstance(dim, int) for dim in self.shape)

    def has_shape_of(self, other: Var) -> bool:
        """Whether both are known to have one shape whenever the program runs."""
        return self.name == other.name or (self.shape == other.shape and None not in self.shape)


@dataclass(frozen=True)
class Program:
    """A model, and what values its inputs may take."""

    model: onnx.ModelProto
    inputs: tuple[Var, ...]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Shows a program that fails; Hypothesis calls this."""
        printer.text(onnx.printer.to_text(self.model))

    def feed(self, seed: int) -> dict[str, np.ndarray]:
        """One set of inputs; symbolic dimensions get sizes 0 to 3."""
        rng = np.random.default_rng(seed)
        sizes: dict[Dim, int] = {}
        result = {}
        for item in self.inputs:
            shape = [
                dim if isinstance(dim, int) else sizes.setdefault(dim, int(rng.integers(0, 4)))
                for dim in item.shape
            ]
            result[item.name] = _random_values(rng, item.element, shape, is_trips(item))
        return result


def shuffle(graph: onnx.GraphProto, seed: int) -> None:
    """Puts the nodes of a graph in another order, in place."""
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes[at] for at in np.random.default_rng(seed).permutation(len(nodes)))


GO = "go"
"""The input that decides whether a Loop without a trip count starts."""


def one_of(draw: Draw, options: Sequence[Any]) -> Any:
    """Draws one of the options, by its index.

    Hypothesis tells draws apart by a hash of the options. The hash of a function is an address, so
    each run would draw other programs.
    """
    return options[draw(st.sampled_from(range(len(options))))]


def is_flag(item: Var) -> bool:
    """Whether a value is a boolean scalar."""
    return item.element == "bool" and item.shape == ()


def is_trips(item: Var) -> bool:
    """Whether an input is a trip count, which must not be negative."""
    return item.name.startswith("trips")


def _random_values(
    rng: np.random.Generator, element: str, shape: Sequence[int], trips: bool = False
) -> np.ndarray:
    """Numbers of magnitude 2 at most, floats in steps of a half; trip counts from -1 on."""
    dtype = TYPES[element][1]
    if trips:
        return np.asarray(rng.integers(-1, MAX_TRIPS + 1, shape), dtype)
    if element == "bool":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    if element in TEXTS:
        return np.asarray(rng.choice(WORDS, shape), dtype)
    if element in UNSIGNED:
        return np.asarray(rng.integers(0, 3, shape), dtype)
    if element in INTEGERS + SIGNED:
        return np.asarray(rng.integers(-2, 3, shape), dtype)
    return np.asarray(rng.integers(-4, 5, shape) / 2, dtype)


@dataclass
class Block:
    """A graph under construction. `outer` is the graph around it; `required` values must be outputs
    of the program."""

    draw: Draw
    opset: int
    name_nodes: bool
    statements: Sequence[Callable[[Block], Any]] = ()
    outer: Block | None = None
    counter: int = 0
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    variables: list[Var] = field(default_factory=list)
    required: list[Var] = field(default_factory=list)
    depth: int = 0
    max_depth: int = MAX_DEPTH

    # Names and scopes

    def fresh(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def child(self, counter: int) -> Block:
        """A body of a node of this block; names count on from `counter`."""
        depth = self.depth + 1
        return replace(
            self, outer=self, counter=counter, depth=depth,
            nodes=[], initializers=[], variables=[], required=[],
        )  # fmt: skip

    def visible(self) -> list[Var]:
        """All values in reach, the innermost scope's latest first."""
        around = self.outer.visible() if self.outer else []
        return self.variables[::-1] + around

    def pick(self, condition: Callable[[Var], bool] = lambda _: True) -> Var | None:
        """Draws a value in reach, None if there is none."""
        candidates = [var for var in self.visible() if condition(var)]
        return one_of(self.draw, candidates) if candidates else None

    def choose(self, choices: Sequence[Any]) -> Any:
        return one_of(self.draw, choices)

    def flip(self) -> bool:
        return self.draw(st.booleans())

    # Nodes

    def add(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> None:
        name = f"{op_type}_{outputs[0]}" if self.name_nodes else ""
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name, **attributes))

    def emit(
        self, op_type: str, inputs: Sequence[Var | str], result: Var, **attributes: Any
    ) -> Var:
        """Adds a node with one output like `result`, under a new name."""
        fed = any(isinstance(item, Var) and item.fed for item in inputs)
        result = replace(result, name=self.fresh(), fed=fed)
        names = [item if isinstance(item, str) else item.name for item in inputs]
        self.add(op_type, names, [result.name], **attributes)
        return self.settle(result)

    def settle(self, var: Var) -> Var:
        """Brings a number back into bounds."""
        if var.element in INTEGERS and var.bound > MAX_BOUND:
            seven = self.literal(np.asarray(7, ELEMENTS[var.element][1]))
            return self.emit("Mod", [var, seven], replace(var, bound=6))
        if var.element in FLOATS and var.bound > MAX_BOUND:
            limits = [self.literal(np.asarray(x, ELEMENTS[var.element][1])) for x in (-8, 8)]
            return self.emit("Clip", [var, *limits], replace(var, bound=8))
        if var.element in FLOATS and (var.bits or 0) > MAX_BITS:
            return self.emit("Floor", [var], replace(var, bits=0, bound=var.bound + 1))
        self.variables.append(var)
        return var

    def literal(self, values: np.ndarray) -> str:
        """A constant of this block that only its own reader may read: no other node draws it."""
        name = self.fresh()
        self.add("Constant", [], [name], value=onnx.numpy_helper.from_array(values))
        return name

    def constant(self, element: str, shape: Sequence[int], initializer: bool) -> Var:
        values = _random_values(
            np.random.default_rng(self.draw(st.integers(0, 99))), element, shape
        )
        var = Var(self.fresh(), element, tuple(shape), 2, 1 if element in FLOATS else 0)
        tensor = onnx.numpy_helper.from_array(values, var.name)
        if initializer:
            self.initializers.append(tensor)
        else:
            self.add("Constant", [], [var.name], value=tensor)
        self.variables.append(var)
        return var

    def produced(self, var: Var) -> bool:
        """Whether a node of this very block makes the value."""
        return any(var.name in node.output for node in self.nodes)

    def origin(self, name: str) -> str:
        """The value that Identity nodes of this block copy under `name`."""
        for node in self.nodes:
            if name in node.output and node.op_type == "Identity":
                return self.origin(node.input[0])
        return name

    def owned(self, var: Var) -> bool:
        """Whether the value is a node's result or an initializer of this very block."""
        return self.produced(var) or any(item.name == var.name for item in self.initializers)

    # Statements

    def fill(self, most: int) -> None:
        """Adds up to `most` statements."""
        for _ in range(self.draw(st.integers(0, most))):
            kinds = [*[simple_node] * 3, new_constant, *self.statements]
            if self.depth < self.max_depth:
                kinds += [add_if, add_if, add_loop, add_scan]
            self.choose(kinds)(self)

    def graph(self, name: str, inputs: Sequence[Var], outputs: Sequence[Var]) -> onnx.GraphProto:
        return helper.make_graph(
            self.nodes,
            name,
            [value_info(var) for var in inputs],
            [value_info(var) for var in outputs],
            self.initializers,
        )


def value_info(var: Var) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(var.name, TYPES[var.element][0], list(var.shape))


# Plain operators. Each rule takes a value and yields choices: functions that add nodes.


def simple_node(block: Block) -> None:
    """Applies an operator to a value in reach."""
    var = block.pick()
    if var is None:
        new_constant(block)
        return
    families = [elementwise, combination, movement, reduction, conversion]
    family = block.choose(families[:3] if var.element in TEXTS else families)
    choices = list(family(block, var)) or list(elementwise(block, var))
    block.choose(choices)()


def new_constant(block: Block) -> None:
    element = block.choose(list(ELEMENTS))
    shape = block.choose([(), (2,), (1,), (0,), (2, 3), (1, 1), (0, 2)])
    block.constant(element, shape, block.flip())


def elementwise(block: Block, var: Var) -> Iterator[Callable[[], Var]]:
    def rule(op_type: str, **changes: Any) -> Callable[[], Var]:
        return lambda: block.emit(op_type, [var], replace(var, **changes))

    yield rule("Identity")
    if var.element == "bool":
        yield rule("Not")
    if var.element in NUMBERS:
        yield rule("Neg")
        yield rule("Abs")
    if var.element == "f32":
        yield rule("Relu")
        yield rule("Tanh", bound=1, bits=None)
        yield rule("Sin", bound=1, bits=None)
        yield rule("Sigmoid", bound=1, bits=None)
    if var.element in FLOATS and var.bits is not None:
        yield rule("Floor", bits=0, bound=var.bound + 1)


def combination(block: Block, var: Var) -> Iterator[Callable[[], Var]]:
    """Operators of two values of one shape, or of a value and a scalar."""
    other = block.pick(
        lambda x: x.element == var.element and (x.has_shape_of(var) or x.shape == ())
    )
    assert other is not None  # the value itself is one
    most = max(var.bound, other.bound)
    exact = var.bits is not None and other.bits is not None
    first, second = var.bits or 0, other.bits or 0
    bits = max(first, second) if exact else None

    def rule(op_type: str, **changes: Any) -> Callable[[], Var]:
        result = replace(var, bound=most, bits=bits)
        return lambda: block.emit(op_type, [var, other], replace(result, **changes))

    if var.element in NUMBERS:
        yield rule("Add", bound=var.bound + other.bound)
        yield rule("Sub", bound=var.bound + other.bound)
        total = first + second if exact else None
        yield rule("Mul", bound=var.bound * other.bound, bits=total)
        yield rule("Max")
        yield rule("Min")
        if exact:
            for op_type in ("Greater", "Less", "Equal"):
                yield rule(op_type, element="bool", bound=1, bits=0)
    if var.element == "bool":
        for op_type in ("And", "Or", "Xor", "Equal"):
            yield rule(op_type)
    if var.element in ("f32", "i64", "i32", "u8"):
        flag = block.pick(is_flag)
        if flag:
            yield lambda: block.emit(
                "Where", [flag, var, other], replace(var, bound=most, bits=bits)
            )
    joined = double_first(var)
    if joined and other.shape == var.shape:
        yield lambda: block.emit(
            "Concat", [var, other], replace(joined, bound=most, bits=bits), axis=0
        )


def double_first(var: Var) -> Var | None:
    """The value with axis 0 twice as long; None if that makes no sense or becomes too large."""
    sizes = [dim for dim in var.shape if isinstance(dim, int)]
    if not sizes or not var.is_fixed or math.prod(sizes) > MAX_ELEMENTS / 4:
        return None
    return replace(var, shape=(2 * sizes[0], *sizes[1:]))


def movement(block: Block, var: Var) -> Iterator[Callable[[], Var]]:
    yield lambda: reshape(block, var, (-1,))
    if len(var.shape) == 2:
        yield lambda: block.emit(
            "Transpose", [var], replace(var, shape=var.shape[::-1]), perm=[1, 0]
        )
    if len(var.shape) < 3:
        yield lambda: unsqueeze(block, var)
    if var.shape and isinstance(var.shape[0], int) and var.shape[0] > 0:
        yield lambda: block.emit(
            "Gather",
            [var, block.literal(np.asarray(-1, np.int64))],
            replace(var, shape=var.shape[1:]),
            axis=0,
        )
    if var.shape:
        yield lambda: slice_first(block, var)
    if all(isinstance(dim, int) and dim <= MAX_BOUND for dim in var.shape):
        yield lambda: block.emit("Shape", [var], Var("", "i64", (len(var.shape),), MAX_BOUND))


def reshape(block: Block, var: Var, shape: Sequence[int]) -> Var:
    if tuple(shape) == (-1,):
        fixed = math.prod(d for d in var.shape if isinstance(d, int)) if var.is_fixed else None
        result: tuple[Dim, ...] = (fixed,)
    else:
        result = tuple(shape)
    target = block.literal(np.asarray(shape, np.int64))
    return block.emit("Reshape", [var, target], replace(var, shape=result))


def unsqueeze(block: Block, var: Var) -> Var:
    axes = block.literal(np.asarray([0], np.int64))
    return block.emit("Unsqueeze", [var, axes], replace(var, shape=(1, *var.shape)))


def slice_first(block: Block, var: Var) -> Var:
    """The first element along axis 0, or no element if there is none; sometimes read backwards."""
    backwards = block.flip()
    start, end, step = (0, 1, 1) if not backwards else (-1, -2, -1)
    bounds = [block.literal(np.asarray([x], np.int64)) for x in (start, end, 0, step)]
    first = var.shape[0]
    length = min(first, 1) if isinstance(first, int) else None
    return block.emit("Slice", [var, *bounds], replace(var, shape=(length, *var.shape[1:])))


def reduction(block: Block, var: Var) -> Iterator[Callable[[], Var]]:
    if var.element not in ("f32", "i64", "i32"):
        return
    total = replace(var, bound=var.bound * MAX_ELEMENTS)
    yield lambda: block.emit("ReduceSum", [var], replace(total, shape=()), keepdims=0)
    ones = (1,) * len(var.shape)
    yield lambda: block.emit("ReduceSum", [var], replace(total, shape=ones), keepdims=1)
    # onnxruntime keeps the reduced axis of a tensor without elements, whatever keepdims says.
    if var.shape and var.is_fixed and 0 not in var.shape:
        yield lambda: block.emit(
            "ReduceSum",
            [var, block.literal(np.asarray([-1], np.int64))],
            replace(total, shape=var.shape[:-1]),
            keepdims=0,
        )


def conversion(block: Block, var: Var) -> Iterator[Callable[[], Var]]:
    def rule(element: str, **changes: Any) -> Callable[[], Var]:
        result = replace(var, element=element, **changes)
        return lambda: block.emit("Cast", [var], result, to=ELEMENTS[element][0])

    if var.element == "bool":
        for element in ("f32", "i64", "i32", *OTHERS):
            yield rule(element, bound=1, bits=0)
    elif var.element in INTEGERS + OTHERS:
        for element in ("f32", "i64", "i32", *SIGNED):
            yield rule(element)
        for element in UNSIGNED if var.element in UNSIGNED else ():
            yield rule(element)
        yield rule("bool", bound=1)
    elif var.element == "f16":
        yield rule("f32")
    elif var.bits is not None:
        yield rule("i64", bits=0)
        yield rule("bool", bits=0, bound=1)
        yield rule("f64" if var.element == "f32" else "f32")
        yield rule("f16")


# Control flow


def condition(block: Block) -> Var:
    """A condition of one element and rank 0, 1 or 2: constant, in reach already, or computed."""
    found = block.pick(lambda x: x.element == "bool" and x.shape in ((), (1,), (1, 1)))
    number = block.pick(lambda x: x.element in ("f32", "i64", "i32") and x.bits is not None)
    kinds = ["constant"] + ["found"] * 2 * (found is not None) + ["computed"] * 3 * bool(number)
    kind = block.choose(kinds)
    if kind == "found" and found:
        return found
    if kind == "constant" or number is None:
        return block.constant("bool", block.choose([(), (1,), (1, 1)]), block.flip())
    total = number
    if number.shape != ():
        bound = number.bound * MAX_ELEMENTS
        total = block.emit(
            "ReduceSum", [number], replace(number, shape=(), bound=bound), keepdims=0
        )
    zero = block.literal(np.zeros((), ELEMENTS[total.element][1]))
    flag = block.emit(
        block.choose(["Greater", "Less", "Equal"]), [total, zero], Var("", "bool", ())
    )
    shape = block.choose([(), (1,), (1, 1)])
    return reshape(block, flag, shape) if shape else flag


def output(block: Block, like: Var, taken: set[str], freely: str = "") -> Var:
    """A value to hand out of a body, of the element type and shape of `like`.

    `freely` loosens the shape: "shape" keeps the rank only, "rank" nothing. The value is never one
    of `taken` and never an outer value or an input of the body: those go through Identity.
    """

    def fits(var: Var) -> bool:
        if var.element != like.element or (like.bits is not None and var.bits is None):
            return False
        if freely == "rank":
            return True
        if freely == "shape":
            return len(var.shape) == len(like.shape)
        return var.has_shape_of(like)

    source = block.choose(["found", "found", "changed", "initializer", "constant"])
    if source in ("initializer", "constant") and like.is_fixed:
        shape = [d for d in like.shape if isinstance(d, int)]
        var = block.constant(like.element, shape, source == "initializer")
    else:
        found = block.pick(fits)
        var = like if found is None else found
        if source == "changed":
            var = block.choose([rule for rule in elementwise(block, var)][:3])()
    if var.name in taken or not block.owned(var):
        var = block.emit("Identity", [var], var)
    taken.add(var.name)
    return var


def merge(name: str, a: Var, b: Var) -> Var:
    """The common knowledge of two values of one rank: it holds for either."""
    shape = tuple(m if m == n else None for m, n in zip(a.shape, b.shape, strict=True))
    bits = None if a.bits is None or b.bits is None else max(a.bits, b.bits)
    return Var(name, a.element, shape, max(a.bound, b.bound), bits, a.fed and b.fed)


def add_if(block: Block) -> None:
    """An If with up to three outputs, branches of equal or different shapes and ranks."""
    flag = condition(block)
    wanted = []
    for _ in range(block.draw(st.integers(1, 3))):
        like = block.pick() or flag
        wanted.append((like, block.choose(["", "", "shape", "rank"])))
    graphs, results = [], []
    counter = block.counter
    reuse_names = block.flip()
    for name in ("then", "else"):
        body = block.child(block.counter if not reuse_names else counter)
        body.fill(BODY_STATEMENTS)
        taken: set[str] = set()
        outputs = [output(body, like, taken, freely) for like, freely in wanted]
        graphs.append(body.graph(name, [], outputs))
        results.append(outputs)
        block.counter = max(block.counter, body.counter)
    names = [block.fresh() for _ in wanted]
    block.add("If", [flag.name], names, then_branch=graphs[0], else_branch=graphs[1])
    for name, a, b in zip(names, *results, strict=True):
        if len(a.shape) == len(b.shape):
            either = merge(name, a, b)
            block.variables.append(replace(either, fed=either.fed or flag.fed))
        else:
            # Only a Reshape is sure to take either rank.
            flat = replace(merge(name, replace(a, shape=()), replace(b, shape=())), shape=(None,))
            reshape(block, flat, (-1,))


def clamp(block: Block, var: Var, like: Var) -> Var:
    """Keeps a state within the bounds that its body assumed."""
    if var.element not in NUMBERS:
        return var
    if var.element in FLOATS and (like.bits is not None and (var.bits or 0) > like.bits):
        var = block.emit("Floor", [var], replace(var, bits=0, bound=var.bound + 1))
    if var.bound > like.bound:
        limits = [
            block.literal(np.asarray(x * like.bound, ELEMENTS[var.element][1])) for x in (-1, 1)
        ]
        var = block.emit("Clip", [var, *limits], replace(var, bound=like.bound))
    return var


def as_state(block: Block, initial: Var, grows: bool) -> Var:
    """The body's input for a carried value that starts as `initial`."""
    shape = (None, *initial.shape[1:]) if grows else initial.shape
    if initial.element not in NUMBERS:  # no operator leaves these bounds
        bound = 1 if initial.element == "bool" else 2 * MAX_BOUND
        return Var(block.fresh(), initial.element, shape, bound, MAX_BITS, initial.fed)
    exact = initial.element in INTEGERS or (initial.bits is not None and block.flip())
    bits = initial.bits if exact else None
    bound = max(4, math.ceil(initial.bound))
    return Var(block.fresh(), initial.element, shape, bound, bits, initial.fed)


def next_state(body: Block, state: Var, grows: bool, taken: set[str]) -> Var:
    """The body's output for a carried value."""
    if grows:
        piece = body.constant(state.element, [1, *state.shape[1:]], body.flip())  # type: ignore
        var = body.emit("Concat", [state, piece], state, axis=0)
        return clamp_output(body, var, state, taken)
    var = output(body, state, set(taken))
    source = body.origin(var.name)
    if source != state.name and not body.owned(replace(var, name=source)):
        var = changed(body, var, state)
    return clamp_output(body, var, state, taken)


def changed(body: Block, var: Var, state: Var) -> Var:
    """A value made from `var` by an operator: OpenVINO fails to simplify a Loop that carries a
    captured value as it is."""
    if var.element in NUMBERS:
        return body.emit("Neg", [var], var)
    if var.element == "bool":
        return body.emit("Not", [var], var)
    return body.emit("Identity", [state], state)


def clamp_output(body: Block, var: Var, state: Var, taken: set[str]) -> Var:
    var = clamp(body, var, state)
    if var.name in taken or not body.owned(var):
        var = body.emit("Identity", [var], var)
    taken.add(var.name)
    return var


def stacked(body: Block, taken: set[str], fits: Callable[[Var], bool]) -> Var:
    """A value of rank 2 at most for a scan output."""
    var = body.pick(lambda x: len(x.shape) < 3 and (fits(x) or x.name == GO))
    assert var is not None
    if var.name in taken or not body.owned(var):
        var = body.emit("Identity", [var], var)
    taken.add(var.name)
    return var


def can_carry(var: Var) -> bool:
    """Whether a value may be the first of a state.

    OpenVINO fails to run a Loop of constants alone that carries one without elements ("Memory
    descriptor may not be modified in StaticMemory object").
    """
    return None not in var.shape and (var.fed or 0 not in var.shape)


def can_grow(block: Block, var: Var) -> bool:
    """Whether a Loop's state may start with a value and change its shape.

    OpenVINO's CPU plugin cannot run a Loop if such a state is an output that nothing reads. So
    states grow at the top only, where they become outputs of the program. OpenVINO also fails to
    fold such a Loop if all its initial values are constant, and misses that an empty state grows.
    """
    if block.outer is not None or not var.fed or not var.shape or 0 in var.shape[1:]:
        return False
    if var.element == TEXT:  # cannot be an output
        return False
    return replace(var, shape=var.shape[1:]).is_fixed


def has_elements(var: Var) -> bool:
    """Whether there surely are elements.

    onnxruntime crashes where a Scan stacks rows without elements along another axis than the first.
    """
    return var.is_fixed and 0 not in var.shape


def add_loop(block: Block) -> None:
    """A Loop with or without trip count and condition, with states that may grow, and outputs."""
    has_trips = block.flip()
    has_condition = block.flip() or not has_trips
    trips = go = ""
    if has_trips:
        found = block.pick(is_trips) if block.flip() else None
        count = block.draw(st.integers(0, MAX_TRIPS))
        trips = found.name if found else block.literal(np.asarray(count, np.int64))
    if has_condition:
        found = block.pick(lambda x: x.name == GO or (has_trips and is_flag(x)))
        assert found is not None
        go = block.literal(np.asarray(True)) if has_trips and block.flip() else found.name
    initial = [var for _ in range(block.draw(st.integers(0, 2))) if (var := block.pick(can_carry))]
    stack_count = block.draw(st.integers(0 if initial else 1, 2))

    body = block.child(block.counter)
    step = Var(body.fresh(), "i64", block.choose([(), (), (1,)]), MAX_TRIPS)
    still = Var(body.fresh(), "bool", ())
    growth = [can_grow(block, var) and block.flip() for var in initial]
    states = [as_state(body, var, grows) for var, grows in zip(initial, growth, strict=True)]
    body.variables += [step, still, *states]
    body.fill(BODY_STATEMENTS)
    taken: set[str] = set()
    if not has_trips or (has_condition and body.flip()):
        last = body.literal(np.asarray(body.draw(st.integers(0, MAX_TRIPS - 1)), np.int64))
        number = reshape(body, step, ()) if step.shape else step
        go_on = body.emit("Less", [number, last], Var("", "bool", ()))
    else:
        go_on = body.emit("Identity", [still], still)
    taken.add(go_on.name)
    carried = [next_state(body, s, grows, taken) for s, grows in zip(states, growth, strict=True)]
    # OpenVINO fails to fold a Loop of constants alone if a condition cuts its stacks short. It
    # cannot load one that stacks rows without elements of a state that changes ("to_shape was
    # called on a dynamic shape"), or of u8 beside one ("Can not create StaticMemory object").
    # onnxruntime stacks the strings of the first iteration alone.
    rows = [
        stacked(
            body,
            taken,
            lambda x: (
                x.is_fixed
                and (x.fed or not has_condition)
                and (not initial or has_elements(x))
                and x.element not in TEXTS
            ),
        )
        for _ in range(stack_count)
    ]
    inputs = [step, still, *states]
    declared = [replace(c, shape=s.shape) for c, s in zip(carried, states, strict=True)]
    graph = body.graph("body", inputs, [go_on, *declared, *rows])
    block.counter = body.counter

    names = [block.fresh() for _ in carried + rows]
    block.add("Loop", [trips, go, *(var.name for var in initial)], names, body=graph)
    for name, first, state, grows in zip(names, initial, states, growth, strict=False):
        block.variables.append(merge(name, first, state))
        if grows:
            block.required.append(block.variables[-1])
    for name, row in zip(names[len(carried) :], rows, strict=True):
        block.variables.append(replace(row, name=name, shape=(None, *row.shape)))


def add_scan(block: Block) -> None:
    """A Scan over one or two values of equal length, any axis, either direction."""
    first = block.pick(lambda x: bool(x.shape) and has_elements(x))
    if first is None:
        new_constant(block)
        return
    axis = block.draw(st.integers(0, len(first.shape) - 1))
    length = first.shape[axis]
    scanned, axes = [first], [axis - len(first.shape) if block.flip() else axis]
    if block.flip():
        other = block.pick(lambda x: length in x.shape and has_elements(x))
        assert other is not None  # the first one is such a value
        scanned.append(other)
        axes.append(other.shape.index(length))
    initial = [var for _ in range(block.draw(st.integers(0, 2))) if (var := block.pick(can_carry))]
    stack_count = block.draw(st.integers(0 if initial else 1, 2))

    body = block.child(block.counter)
    states = [as_state(body, var, False) for var in initial]
    slices = []
    for var, along in zip(scanned, axes, strict=True):
        dims = list(var.shape)
        del dims[along]
        slices.append(replace(var, name=body.fresh(), shape=tuple(dims)))
    body.variables += [*states, *slices]
    body.fill(BODY_STATEMENTS)
    taken: set[str] = set()
    carried = [next_state(body, state, False, taken) for state in states]
    rows = [stacked(body, taken, has_elements) for _ in range(stack_count)]
    graph = body.graph("body", [*states, *slices], [*carried, *rows])
    block.counter = body.counter

    out_axes = [block.draw(st.integers(0, len(row.shape))) for row in rows]
    attributes: dict[str, Any] = {
        "num_scan_inputs": len(scanned),
        "scan_input_axes": axes,
        "scan_input_directions": [int(block.flip()) for _ in scanned],
    }
    if rows:
        attributes["scan_output_axes"] = [
            axis - len(row.shape) - 1 if block.flip() else axis
            for axis, row in zip(out_axes, rows, strict=True)
        ]
        attributes["scan_output_directions"] = [int(block.flip()) for _ in rows]
    names = [block.fresh() for _ in carried + rows]
    inputs = [var.name for var in initial + scanned]
    block.add("Scan", inputs, names, body=graph, **attributes)
    for name, var, state in zip(names, initial, states, strict=False):
        block.variables.append(merge(name, var, state))
    for name, row, axis in zip(names[len(carried) :], rows, out_axes, strict=True):
        shape = (*row.shape[:axis], length, *row.shape[axis:])
        block.variables.append(replace(row, name=name, shape=shape))
