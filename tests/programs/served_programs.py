"""Models as exporters write them and servers run them, of one element type in every position.

A value of any number of rows, [N, 3], goes through branches, Loops, Scans, sequences, optionals and
functions that call functions. Sibling bodies share names, initializers are inputs, and trailing
inputs are left out. Numbers are small integers, which all types hold, or halves where floats do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper, parser

from tests.programs.blocks import Draw
from tests.programs.options import Use, drawn_use

SIZES = (2, 0, 5, 1, 2)
"""Numbers of rows, by the seed of a feed: one compiled model is called so in a row."""

WORDS = ("one", "two", "three", "")
PACKED = ("int4", "uint4", "uint2", "float4e2m1")
"""Types of few bits, which bodies read: onnxruntime has few operators on them."""

FED = ("float", "double", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32",
       "uint16", "uint8", "bool", "string")  # fmt: skip
STORED = ("bfloat16", "float8e4m3fn", "float8e5m2")
"""Types that numpy lacks: they are cast from the input, and to the outputs."""

COMPUTED = ("float", "double", "float16", "int64", "int32")
FLOATS = COMPUTED[:3]
SINCE = {
    "uint2": 25,
    "float4e2m1": 23,
    "int4": 21,
    "uint4": 21,
    "string": 19,
} | dict.fromkeys(STORED, 19)
MOST_ROWS, MOST_DEPTH = 6, 3


@dataclass
class Program:
    """A model, and how it is converted and called."""

    model: onnx.ModelProto
    element: str
    use: Use

    def feed(self, seed: int) -> Mapping[str, Any]:
        """The inputs of a call; the seed says how many rows there are."""
        random = np.random.default_rng(seed)
        feed: dict[str, Any] = {}
        held = {one.name for one in self.model.graph.initializer} - {"w"}
        for value in self.model.graph.input:
            if value.name in held:
                continue
            tensor = value.type.tensor_type
            shape = [d.dim_value or SIZES[seed % len(SIZES)] for d in tensor.shape.dim]
            numbers = random.integers(0, 4, shape)
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            plain = dtype.kind == "O"
            feed[value.name] = np.array(WORDS, object)[numbers] if plain else numbers.astype(dtype)
        return feed | {name: np.array(feed[name]) for name in feed}


@dataclass
class Scope:
    """A graph or a function under construction, in ONNX's text syntax."""

    drawing: Drawing
    values: list[str]
    """Values of [?, 3] that a node here may read."""
    flag: str | None
    visible: frozenset[str]
    """The names of the scopes around, which none here takes."""
    depth: int = 0
    in_function: bool = False
    in_loop: bool = False
    lines: list[str] = field(default_factory=list)
    made: int = 0
    used: set[str] = field(default_factory=set)
    """Names of bodies in here: only bodies beside them have them as well."""

    def name(self) -> str:
        """A new name: sibling bodies count from the same number."""
        while True:
            self.made += 1
            if self.drawing.shares_names:
                found = f"{self.drawing.stem}{self.made}"
            else:
                self.drawing.count += 1
                found = f"v{self.drawing.count}"
            if found not in self.visible and found not in self.used:
                self.visible |= {found}
                return found

    def op(self, text: str, outputs: int = 1) -> str:
        """The first output of a node."""
        names = [self.name() for _ in range(outputs)]
        self.lines.append(f"{', '.join(names)} = {text}")
        return names[0]

    def const(self, kind: str, *numbers: Any, scalar: bool = False) -> str:
        """A constant vector: a node, or an initializer of the model."""
        shape, drawing = "" if scalar else f"[{len(numbers)}]", self.drawing
        texts = ", ".join(f'"{one}"' if kind == "string" else str(one) for one in numbers)
        if kind == "float16":  # The parser does not read these.
            return self.op(f"Cast <to = 10> ({self.const('float', *numbers, scalar=scalar)})")
        literal = f"{kind}{shape} {{{texts}}}"
        if self.in_function or drawing.random.random() < 0.5:
            return self.op(f"Constant <value = {literal}> ()")
        name = f"k{len(drawing.initializers)}"
        drawing.initializers.append(f"{kind}{shape} {name} = {{{texts}}}")
        return name

    def ints(self, *numbers: int) -> str:
        return self.const("int64", *numbers)

    def inner(self) -> Scope:
        """A body in here."""
        values, depth = [*self.values], self.depth + 1
        return Scope(
            self.drawing, values, self.flag, self.visible, depth, self.in_function, self.in_loop
        )

    def text(self, body: Scope) -> str:
        """The nodes of a body, which is complete."""
        self.used |= body.visible - self.visible | body.used
        return f"{{{' '.join(body.lines)}}}"

    def condition(self, v: str) -> str:
        """A flag: an input, or of the number of rows, or of the numbers."""
        random = self.drawing.random
        if self.flag and random.random() < 0.5:
            return self.flag
        if random.random() < 0.6:
            rows = self.op(f"Shape <start = 0, end = 1> ({v})")
            bound = self.ints(random.randint(0, 3))
            return self.op(f"{random.choice(['Greater', 'Less'])} ({rows}, {bound})")
        if self.drawing.element == "string":
            return self.op(f"Greater ({self.op(f'Size ({v})')}, {self.ints(3)})")
        numbers = self.op(f"Cast <to = 1> ({v})")
        total = self.op(f"ReduceSum <keepdims = 0> ({numbers})")
        return self.op(f"Greater ({total}, {self.const('float', 4.25, scalar=True)})")


@dataclass
class Drawing:
    """What all scopes of a model share. `packed` is the input in a type of few bits."""

    random: Random
    element: str
    opset: int
    shares_names: bool
    stem: str
    packed: str = ""
    looped: bool = False
    """Whether OpenVINO runs a Loop that captures it."""
    count: int = 0
    initializers: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)

    def typed(self, name: str, shape: str = "?,3") -> str:
        """A declaration, with a shape or without; a stack or a sequence has another shape."""
        return f"{self.element}[{shape if self.random.random() < 0.7 else ''}] {name}"


def _moved(s: Scope, v: str) -> str:
    random, element = s.drawing.random, s.drawing.element
    few = [
        lambda: s.op(f"Identity ({v})"),
        lambda: s.op(f"Transpose ({s.op(f'Transpose ({v})')})"),
        lambda: s.op(f"Squeeze ({s.op(f'Unsqueeze ({v}, {s.ints(0)})')}, {s.ints(0)})"),
        lambda: s.op(f"Reshape ({s.op(f'Reshape ({v}, {s.ints(-1)})')}, {s.op(f'Shape ({v})')})"),
    ]
    more = [
        lambda: s.op(f"Slice ({v}, {s.ints(2)}, {s.ints(-9)}, {s.ints(1)}, {s.ints(-1)})"),
        lambda: s.op(f"Slice ({v}, {s.ints(0)}, {s.ints(4)})"),
        lambda: s.op(f"Gather <axis = 1> ({v}, {s.ints(2, 0, -2)})"),
        lambda: s.op(f"Tile ({v}, {s.ints(1, 1)})"),
        lambda: _shortened(s, s.op(f"Concat <axis = 0> ({v}, {random.choice(s.values)})")),
        lambda: s.op(f"Expand ({v}, {s.op(f'Shape ({v})')})"),
        lambda: s.op(f"Flatten ({v})"),
        *[
            lambda: _shortened(s, s.op(f"Pad ({v}, {s.ints(1, 0, 0, 0)})")),
            lambda: s.op(f"Where ({s.condition(v)}, {v}, {_row(s)})"),
        ]
        * (element in COMPUTED and element != "float16"),
        *[lambda: s.op(f"Dropout ({v})")] * (element in FLOATS),
    ]
    return random.choice(few if element in STORED and random.random() < 0.9 else [*few, *more])()


def _shortened(s: Scope, v: str) -> str:
    return s.op(f"Slice ({v}, {s.ints(0)}, {s.ints(MOST_ROWS)}, {s.ints(0)})")


def _computed(s: Scope, v: str) -> str:
    """Arithmetic, in the type or around it."""
    random, element = s.drawing.random, s.drawing.element
    if element == "string":
        return _moved(s, v)
    reads = s.drawing.looped or not s.in_loop
    if s.drawing.packed and reads and not s.in_function and random.random() < 0.4:
        return s.op(f"Cast <to = 1> ({s.drawing.packed})")
    kind = element if element in COMPUTED and random.random() < 0.7 else random.choice(COMPUTED[:2])
    n = v if kind == element else s.op(f"Cast <to = {helper_type(kind)}> ({v})")
    w = s.const(kind, 1, 0, 3)
    texts = [f"Add ({n}, {w})", f"Max ({n}, {w})", f"Sub ({w}, {n})", f"Mul ({n}, {w})",
             f"Abs ({n})", f"Min ({n}, {w}, {n})",
             f"Where ({s.condition(v)}, {n}, {w})"]  # fmt: skip
    if kind in FLOATS:
        texts += [
            f"Relu ({n})",
            f"Mul ({n}, {s.const(kind, 0.5)})",
            f"Clip ({n}, , {s.const(kind, 2, scalar=True)})",
        ]
        texts += [f"ReduceSum <keepdims = 1> ({n}, {s.ints(1)})"]
    n = s.op(random.choice(texts))
    low, high = s.const(kind, 0, scalar=True), s.const(kind, 3, scalar=True)
    n = s.op(f"Expand ({s.op(f'Clip ({n}, {low}, {high})')}, {s.op(f'Shape ({v})')})")
    if kind == element:
        return n
    if element not in FLOATS:
        n = s.op(f"Floor ({n})")
    return s.op(f"Cast <to = {helper_type(element)}> ({n})")


def helper_type(element: str) -> int:
    """The number of a type with this name in ONNX's text."""
    return int(onnx.TensorProto.DataType.Value(element.upper()))


def _branched(s: Scope, v: str) -> str:
    drawing, count = s.drawing, s.drawing.random.randint(1, 2)
    flag, texts = s.condition(v), []
    for side in ("then", "else"):
        body = s.inner()
        last = [_steps(body, v, 0, 2) for _ in range(count)]
        # No body gives a value of the graph around it, or one value twice.
        last = [body.op(f"Identity ({one})") for one in last]
        outputs = ", ".join(drawing.typed(one) for one in last)
        texts.append(f"{side}_branch = {side}_{s.depth} () => ({outputs}) {s.text(body)}")
    return s.op(f"If ({flag}) <{', '.join(texts)}>", count)


def _looped(s: Scope, v: str) -> str:
    drawing, random = s.drawing, s.drawing.random
    trips = random.choice(["k", s.const("int64", random.randint(0, 3), scalar=True), ""])
    trips = s.const("int64", 2, scalar=True) if s.in_function and trips == "k" else trips
    given = random.choice(["", s.const("bool", 1, scalar=True), s.flag or ""])
    given = s.const("bool", 1, scalar=True) if trips == given == "" else given
    body = s.inner()
    body.in_loop = True
    i, go, state = body.name(), body.name(), body.name()
    body.values.append(state)
    last = body.op(f"Identity ({_steps(body, state, 1, 3)})")
    limit = body.op(f"Less ({i}, {body.const('int64', 1, scalar=True)})")
    on = (
        limit
        if trips == ""
        else body.op(f"Identity ({go})" if random.random() < 0.5 else f"Or ({go}, {limit})")
    )
    stacks = []
    if random.random() < 0.4 and drawing.element not in STORED:
        row = body.op(f"Unsqueeze ({_row(body)}, {body.ints(0)})")
        stacks.append(_first(body, body.op(f"Concat <axis = 0> ({last}, {row})")))
    outputs = [f"bool {on}", drawing.typed(last), *(f"{drawing.element}[] {one}" for one in stacks)]
    text = f"b{s.depth} (int64 {i}, bool {go}, {drawing.typed(state)}) => ({', '.join(outputs)})"
    found = s.op(f"Loop ({trips}, {given}, {v}) <body = {text} {s.text(body)}>", 1 + len(stacks))
    if stacks:
        stack = s.lines[-1].split(" = ")[0].split(", ")[1]
        s.values.append(s.op(f"Reshape ({stack}, {s.ints(-1, 3)})"))
    return found


def _scanned(s: Scope, v: str) -> str:
    """Row by row; the state is a row."""
    drawing = s.drawing
    start, body = s.op(f"Identity ({_row(s)})"), s.inner()
    body.in_loop = True
    state, row = body.name(), body.name()
    wide = [body.op(f"Unsqueeze ({one}, {body.ints(0)})") for one in (state, row)]
    body.values = [*wide]  # rows alone: a body may not read more than it has
    last = [_steps(body, one, 0, 2) for one in wide]
    last = [body.op(f"Reshape ({_first(body, one)}, {body.ints(3)})") for one in last]
    outputs = ", ".join(drawing.typed(one, "3") for one in last)
    entries = f"{drawing.typed(state, '3')}, {drawing.typed(row, '3')}"
    text = f"r{s.depth} ({entries}) => ({outputs}) {s.text(body)}"
    s.op(f"Scan <num_scan_inputs = 1, body = {text}> ({start}, {v})", 2)
    return s.lines[-1].split(" = ")[0].split(", ")[1]


def _first(s: Scope, v: str) -> str:
    return s.op(f"Slice ({v}, {s.ints(0)}, {s.ints(1)}, {s.ints(0)})")


def _row(s: Scope) -> str:
    """A constant row of the type: the initializer `w`, which may be an input."""
    element = s.drawing.element
    if not s.in_function:
        return "w"
    if element == "string":
        return s.const(element, "one", "", "two")
    return s.op(f"Cast <to = {helper_type(element)}> ({s.const('float', 1, 2, 0)})")


def _in_sequence(s: Scope, v: str) -> str:
    random, other = s.drawing.random, s.drawing.random.choice(s.values)
    held = s.op(f"SequenceConstruct ({v}, {other})")
    if random.random() < 0.5:
        held = s.op(f"SequenceInsert ({held}, {v})")
    if random.random() < 0.5:
        return _shortened(s, s.op(f"ConcatFromSequence <axis = 0> ({held})"))
    return s.op(f"SequenceAt ({held}, {s.const('int64', random.choice([0, -1]), scalar=True)})")


def _in_optional(s: Scope, v: str) -> str:
    return s.op(f"OptionalGetElement ({s.op(f'Optional ({v})')})")


def _called(s: Scope, v: str) -> str:
    """A function of the model, new or not, with a trailing input that may be left out."""
    drawing, random = s.drawing, s.drawing.random
    known = len(drawing.functions)
    if known and random.random() < 0.4:
        return s.op(f"m.f:o{random.randrange(known)} ({v}{random.choice(['', f', {v}'])})")
    body = Scope(drawing, ["p"], None, frozenset({"p", "q"}), s.depth + 1, True)
    last = _steps(body, "p", 1, 3)
    if drawing.element in FLOATS and random.random() < 0.5:
        last = body.op(f"Clip ({last}, {body.const(drawing.element, 1, scalar=True)})")
    last = body.op(f"Identity ({last})")
    number = len(drawing.functions)  # after the functions that it calls
    drawing.functions.append(
        f'<opset_import: ["" : {drawing.opset}, "m" : 1], domain: "m", overload: "o{number}"> '
        f"f (p, q) => ({last}) {{ {' '.join(body.lines)} }}"
    )
    return s.op(f"m.f:o{number} ({v})")


STEPS: tuple[tuple[Callable[[Scope, str], str], int], ...] = (
    (_moved, 4), (_computed, 4), (_branched, 3), (_looped, 2), (_scanned, 1), (_in_sequence, 1),
    (_in_optional, 1), (_called, 2),
)  # fmt: skip


def _steps(s: Scope, v: str, least: int, most: int) -> str:
    """Some steps in a row; what each gives may be read later."""
    random = s.drawing.random
    for _ in range(random.randint(least, most)):
        shallow = STEPS[:2] if s.depth >= MOST_DEPTH else STEPS
        if s.drawing.element in STORED:  # No engine has sequences of these.
            shallow = [one for one in shallow if one[0] not in (_in_sequence, _in_optional)]
        step = random.choices([one for one, _ in shallow], [weight for _, weight in shallow])[0]
        v = step(s, v)
        s.values.append(v)
    return v


def made(random: Random) -> Program:
    """A program of this random state."""
    element = random.choice((*FED, *STORED, random.choice(PACKED)))
    opset = max(random.choice([17, 18, 19, 21, 23, 24]), SINCE.get(element, 17))
    packed, element = (element, "float") if element in PACKED else ("", element)
    drawing = Drawing(
        random, element, opset, random.random() < 0.7, random.choice(["a", "t", "x_"])
    )
    fed = "float" if element in STORED else element
    start = Scope(drawing, [], "c", frozenset({"x", "w0", "w", "c", "k", "past", "present"}))
    x = start.op(f"Cast <to = {helper_type(element)}> (x)") if fed != element else "x"
    if fed == element != "float16":
        row = ", ".join(["1", "0", "1"] if element != "string" else ['"one"', '""', '"two"'])
        drawing.initializers.append(f"{element}[3] w = {{{row}}}")
    else:
        drawing.initializers.append("float[3] w0 = {1, 0, 1}")
        start.lines.append(f"w = Cast <to = {helper_type(element)}> (w0)")
    start.values.append(x)
    if packed:
        # onnxruntime rounds where the standard cuts.
        drawing.packed = start.op(f"Cast <to = {helper_type(packed)}> ({start.op('Floor (x)')})")
        drawing.looped = packed in ("int4", "uint4")
    results = [_steps(start, x, 2, 4) for _ in range(random.randint(1, 2))]
    last, given = "Identity ({})", fed
    if fed != element:
        last = "Cast <to = 1> ({})"
    elif element == "string":  # IR has no strings that the model does not name.
        last, given = "Equal ({}, w)", "bool"
    results = [start.op(last.format(one)) for one in results]
    stateful = element in FLOATS and random.random() < 0.4
    inputs = [f"{fed}[N,3] x", "bool c", "int64 k"]
    outputs = [
        f"{given}[{random.choice([f'M{number}', '?'])},3] {one}"
        for number, one in enumerate(results)
    ]
    if given == element and random.random() < 0.3:  # what bodies capture, a constant, an input
        taken = {one.split()[-1] for one in outputs}
        more = [one for one in dict.fromkeys([*start.values, "w"]) if one not in taken]
        outputs += [
            f"{fed}[{'3' if one == 'w' else '?,3'}] {one}" for one in random.sample(more, 1)
        ]
    if stateful:
        total = start.op(f"ReduceSum <keepdims = 0> (x, {start.ints(0)})")
        start.lines.append(f"present = Add (past, {total})")
        inputs.append(f"{fed}[3] past")
        outputs.append(f"{fed}[3] present")
    with_inputs = random.random() < 0.3
    listed = [*inputs, *drawing.initializers] if with_inputs else inputs
    held = "" if with_inputs else f"<{', '.join(drawing.initializers)}>"
    text = (
        f'<ir_version: 10, opset_import: ["" : {opset}, "m" : 1]> g ({", ".join(listed)}) => '
        f"({', '.join(outputs)}) {held} {{ {' '.join(start.lines)} }} {' '.join(drawing.functions)}"
    )
    model = parser.parse_model(text)
    return Program(model, element, drawn_use(random, model))


@st.composite
def served_programs(draw: Draw) -> Program:
    """Draws such a program."""
    return made(Random(bytes(draw(st.lists(st.integers(0, 255), min_size=8, max_size=8)))))
