"""Draws programs of two or three node cases, the standard's own or others, in one nest of If, Loop
and Scan. The inputs of a case are inputs of the program, constants, states, slices, elements of
sequences or results of an earlier case, captured across any number of levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import AttributeProto, TensorProto, TypeProto, helper, numpy_helper

from tests.conformance.cases import Case
from tests.programs.blocks import one_of, shuffle
from tests.programs.contrib_cases import VERSIONS
from tests.programs.known_cases import at_opset

OPSETS = (17, 18, 19, 20, 21, 22, 23, 24, 25)
FLAGS = ("flag0", "flag1")
TRIPS, ROUNDS = "trips", "rounds"
"""The trip counts of a Loop; the second is never 0."""
MAX_TRIPS = 3

CARRIERS = {
    TensorProto.BFLOAT16: TensorProto.FLOAT,
    TensorProto.FLOAT8E4M3FN: TensorProto.FLOAT,
    TensorProto.FLOAT8E5M2: TensorProto.FLOAT,
    TensorProto.INT4: TensorProto.INT8,
    TensorProto.UINT4: TensorProto.UINT8,
}
"""The element types of inputs and outputs of a program, in place of types that numpy lacks."""

MOVING = {
    "Identity", "Reshape", "Transpose", "Concat", "Slice", "Gather", "GatherElements",
    "GatherND", "ScatterND", "Pad", "Tile", "Expand", "Squeeze", "Unsqueeze", "Split",
    "DepthToSpace", "SpaceToDepth", "Neg", "Abs", "Max", "Min", "Where", "Relu", "Clip",
    "Flatten", "Compress", "OneHot", "Trilu", "ReverseSequence", "Ceil", "Floor", "Sign",
    "CenterCropPad", "Shape", "Size",
}  # fmt: skip
"""Operators whose results agree to the last bit in every engine."""

SHARP = {
    "Ceil", "Floor", "Round", "Sign", "Mod", "ThresholdedRelu", "Shrink", "Hardmax", "TopK",
    "Unique", "RoiAlign", "GridSample", "Cast", "CastLike", "Inverse", "Det", "Acos", "Acosh",
    "Asin", "Atanh", "Log", "Sqrt", "Pow", "Reciprocal", "Div", "Tan",
}  # fmt: skip
"""Operators of floats whose results jump if the engines round an operand differently."""

UNSAFE = frozenset(["Div", "Mod", "Pow", "BitShift"])
"""Operators that fail on some integers."""


ILL_CONDITIONED = frozenset(["Inverse"])
"""Operators that accept only the numbers of their own cases."""


@dataclass(frozen=True)
class Value:
    """A value with an example of its content. Its shape is the same in every run unless it is
    `loose`. `exact` says that all engines compute the same elements."""

    name: str
    type: TypeProto
    data: Any
    exact: bool = True
    loose: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.type.HasField("tensor_type")

    @property
    def element(self) -> int:
        return self.type.tensor_type.elem_type

    def fits(self, type: TypeProto, data: Any) -> bool:
        """Whether it has this type and, as a tensor, surely this shape."""
        if _bare(self.type) != _bare(type):
            return False
        return not self.is_tensor or (not self.loose and self.data.shape == data.shape)


@dataclass(frozen=True)
class CaseProgram:
    """A model, and the inputs that its cases have."""

    model: onnx.ModelProto
    inputs: Mapping[str, Any]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(onnx.printer.to_text(self.model))

    def feed(self, seed: int) -> dict[str, Any]:
        """One set of inputs, the cases' own for even seeds."""
        rng = np.random.default_rng(seed)
        feed = {name: _varied(data, seed % 2) for name, data in self.inputs.items()}
        feed |= {name: np.array(bool(rng.integers(0, 2))) for name in FLAGS}
        feed[TRIPS] = np.array(rng.integers(0, MAX_TRIPS + 1), np.int64)
        feed[ROUNDS] = np.array(max(1, int(feed[TRIPS])), np.int64)
        return {value.name: feed[value.name] for value in self.model.graph.input}


def _varied(data: Any, steps: int) -> Any:
    """Other content that the case accepts as well. Floats of rank 2 and more are rotated along the
    last axis. Floats of lower rank stay, since they may be scales or sizes."""
    if isinstance(data, np.ndarray) and data.dtype.kind == "f" and data.ndim > 1:
        return np.roll(data, steps, -1)
    return data


def _bare(type: TypeProto) -> TypeProto:
    """The type without shapes."""
    bare = TypeProto()
    bare.CopyFrom(type)
    _innermost(bare).tensor_type.ClearField("shape")
    return bare


def _innermost(type: TypeProto) -> TypeProto:
    """The type of the tensors in it."""
    while not type.HasField("tensor_type"):
        held = "optional_type" if type.HasField("optional_type") else "sequence_type"
        type = getattr(type, held).elem_type
    return type


def _ranked(type: TypeProto, data: Any) -> TypeProto:
    """The type of a sequence or optional, with the rank of its tensors if they have one."""
    ranked = TypeProto()
    ranked.CopyFrom(type)
    inner = _innermost(ranked)
    ranks = {item.ndim for item in (data if isinstance(data, list) else [data]) if item is not None}
    if len(ranks) == 1:
        shape = [None] * ranks.pop()
        inner.CopyFrom(helper.make_tensor_type_proto(inner.tensor_type.elem_type, shape))
    return ranked


@dataclass
class Program:
    """What all blocks share."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    opset: int
    count: int = 0
    inputs: dict[str, Value] = field(default_factory=dict)
    functions: list[onnx.FunctionProto] = field(default_factory=list)
    opens: bool = False

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def choose(self, options: Sequence[Any]) -> Any:
        return one_of(self.draw, options)

    def chance(self, one_in: int = 2) -> bool:
        return bool(self.draw(st.integers(1, one_in)) == 1)


@dataclass
class Block:
    """A graph under construction: the top, a branch, or a body with its states and slices."""

    program: Program
    outer: Block | None = None
    role: str = ""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    states: list[tuple[str, Value]] = field(default_factory=list)
    slices: list[tuple[str, Value, int, int]] = field(default_factory=list)
    number: str = ""
    length: int = 2

    def visible(self) -> list[Value]:
        """Results of cases and nests in reach."""
        return [*self.values, *(self.outer.visible() if self.outer else [])]

    def op(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = self.program.fresh("t")
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def constant(self, data: np.ndarray) -> str:
        if self.program.chance(3):
            name = self.program.fresh("w")
            self.initializers.append(numpy_helper.from_array(data, name))
            return name
        return self.op("Constant", [], value=numpy_helper.from_array(data))

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def flag(self) -> str:
        """A condition: an input, its opposite, a constant, or a comparison of the iteration."""
        name = self.program.choose(FLAGS)
        kinds = ["input", "input", "not", "constant"] + ["iteration"] * 3 * bool(self.number)
        match self.program.choose(kinds):
            case "not":
                return self.op("Not", [name])
            case "constant":
                return self.constant(np.array(self.program.chance()))
            case "iteration":
                op_type = self.program.choose(["Less", "Equal"])
                return self.op(op_type, [self.number, self.constant(np.array(1, np.int64))])
        return str(name)

    # Sources of a case's inputs

    def source(self, type: TypeProto, data: Any, wanted: Callable[[Value], bool]) -> Value:
        """A value of this type with this content or similar content; an earlier result only if it
        is `wanted`."""
        kinds = ["input", "input"]
        tensor = type.HasField("tensor_type")
        # A short list of numbers may be scales, limits or sizes.
        wanted = wanted if tensor and data.ndim > 1 else self.nothing
        if tensor:
            kinds += ["weight"]
            kinds += ["sequence", "branches"] if self.program.chance(6) else []
            kinds += ["slice", "slice"] if self.role == "Scan" else []
        carries = self.role == "Loop" or (self.role == "Scan" and tensor)
        kinds += ["state", "state"] if carries else []
        found = [value for value in self.visible() if wanted(value) and value.fits(type, data)]
        if found and self.program.chance():
            return self.program.choose(found)
        loose = [value for value in self.visible() if wanted(value) and _can_fit(value, type)]
        if tensor and loose and self.program.chance():
            return self.fitted(self.program.choose(loose), type, data)
        made = getattr(self, self.program.choose(kinds))(type, data)
        return Value(made, type, data)

    def nothing(self, value: Value) -> bool:
        return False

    def given(self, type: TypeProto, data: Any) -> str:
        return self.source(type, data, self.nothing).name

    def input(self, type: TypeProto, data: Any) -> str:
        """An input of the program, sizes fixed, named or open."""
        program = self.program
        top = self
        while top.outer:
            top = top.outer
        element = type.tensor_type.elem_type
        name = program.fresh("x")
        if not type.HasField("tensor_type"):
            program.inputs[name] = Value(name, _ranked(type, data), data)
            return name
        dims = [program.choose([size, size, f"n{size}", None]) for size in data.shape]
        # The length of a list of integers may be a rank.
        dims = dims if program.opens and (data.ndim > 1 or data.dtype.kind == "f") else data.shape
        carrier = CARRIERS.get(element, element)
        held = data.astype(helper.tensor_dtype_to_np_dtype(carrier))
        declared = helper.make_tensor_type_proto(carrier, dims)
        program.inputs[name] = Value(name, declared, held)
        return name if carrier == element else top.op("Cast", [name], to=element)

    def weight(self, type: TypeProto, data: Any) -> str:
        return self.constant(data)

    def state(self, type: TypeProto, data: Any) -> str:
        """A carried value that starts as a value of the graph around it."""
        assert self.outer
        name = self.program.fresh("s")
        first = self.outer.given(type, data)
        self.states.append((name, Value(first, type, data)))
        return name

    def slice(self, type: TypeProto, data: Any) -> str:
        """A part of a tensor around a Scan."""
        assert self.outer
        name = self.program.fresh("p")
        axis = self.program.draw(st.integers(0, data.ndim))
        whole = np.stack([_varied(data, step) for step in range(self.length)], axis)
        held = self.outer.given(
            helper.make_tensor_type_proto(type.tensor_type.elem_type, None), whole
        )
        axis -= (data.ndim + 1) * self.program.chance()
        self.slices.append((name, Value(held, type, data), axis, int(self.program.chance())))
        return name

    def sequence(self, type: TypeProto, data: Any) -> str:
        """An element of a sequence."""
        parts = [self.given(type, data), self.given(type, _varied(data, 1))]
        made = self.op("SequenceConstruct", parts)
        return self.op("SequenceAt", [made, self.constant(np.array(-1, np.int64))])

    def branches(self, type: TypeProto, data: Any) -> str:
        """One of two values, by a condition."""
        flag = self.flag()
        graphs = []
        for steps in range(2):
            inner = Block(self.program, self, "If")
            held = inner.op("Identity", [inner.given(type, _varied(data, steps))])
            graphs.append(inner.graph([], [Value(held, type, data)]))
        return self.op("If", [flag], then_branch=graphs[0], else_branch=graphs[1])

    def fitted(self, value: Value, type: TypeProto, data: np.ndarray) -> Value:
        """The elements of a value in another shape. Elements of `data` fill it up."""
        flat = self.op("Reshape", [value.name, self.ints(-1)])
        if value.element != type.tensor_type.elem_type:
            flat = self.op("Cast", [flat], to=type.tensor_type.elem_type)
        longer = self.op("Concat", [flat, self.constant(data.reshape(-1))], axis=0)
        cut = self.op("Slice", [longer, self.ints(0), self.ints(data.size)])
        name = self.op("Reshape", [cut, self.ints(*data.shape)])
        return Value(name, type, data, value.exact)

    # The nodes of a case

    def case(self, case: Case) -> list[Value]:
        """The nodes of a case, here or in a function."""
        graph = case.model.graph
        inputs, outputs = case.data_sets[0]
        operators = {node.op_type for node in graph.node}
        wanted = _wanted(graph, operators)
        given = []
        for info, data in zip(graph.input, inputs, strict=True):
            # Inputs after the first one are often weights or sizes.
            self.program.opens = not given
            given.append(self.source(info.type, data, wanted))
        exact = all(value.exact for value in given)
        names = {info.name: value.name for info, value in zip(graph.input, given, strict=True)}
        prefix = self.program.fresh("c") + "_"
        made = [prefix + info.name for info in graph.output]
        if self.program.chance(6) and not any(node.domain for node in graph.node):
            self.call(graph, [value.name for value in given], made)
        else:
            copy = onnx.GraphProto()
            copy.CopyFrom(graph)
            _rename(copy, lambda name: names.get(name, prefix + name))
            self.nodes.extend(copy.node)
        values = [
            Value(name, _bare(info.type), data, exact and _is_exact(info, operators))
            for name, info, data in zip(made, graph.output, outputs, strict=True)
        ]
        self.values += values
        return values

    def call(self, graph: onnx.GraphProto, given: Sequence[str], made: Sequence[str]) -> None:
        name = self.program.fresh("Function")
        self.program.functions.append(
            helper.make_function(
                "local",
                name,
                [info.name for info in graph.input],
                [info.name for info in graph.output],
                graph.node,
                [helper.make_opsetid("", self.program.opset)],
            )
        )
        self.nodes.append(helper.make_node(name, given, made, domain="local"))

    # Nests

    def graph(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> onnx.GraphProto:
        infos = [[self.info(value) for value in values] for values in (inputs, outputs)]
        return helper.make_graph(self.nodes, self.program.fresh("g"), *infos, self.initializers)

    def info(self, value: Value) -> onnx.ValueInfoProto:
        """The declared type with its sizes, its rank or no shape; onnxruntime needs a rank in Loop
        and Scan."""
        type = _bare(value.type)
        if value.is_tensor and (self.role in ("Loop", "Scan") or self.program.chance()):
            open_sizes = value.loose or (value.data.ndim > 0 and self.program.chance())
            shape = [None] * value.data.ndim if open_sizes else value.data.shape
            type = helper.make_tensor_type_proto(value.element, shape)
        return helper.make_value_info(value.name, type)

    def own(self, value: Value) -> Value:
        return replace(value, name=self.op("Identity", [value.name]))

    def some(self, values: Sequence[Value]) -> list[Value]:
        """One to three of the values."""
        left = list(values)
        most = min(3, len(left))
        count = self.program.draw(st.integers(1, most))
        return [left.pop(self.program.draw(st.integers(0, len(left) - 1))) for _ in range(count)]

    def other(self, value: Value, resizes: bool = True) -> Value:
        """A value of the type of another one; it has another shape if it `resizes`."""
        shape = value.data.shape if value.is_tensor else ()
        if shape and resizes and self.program.chance(3):
            smaller = value.data[: shape[0] // 2]
            name = self.constant(np.ascontiguousarray(smaller))
            return replace(value, name=name, data=smaller, exact=True, loose=True)
        return replace(value, name=self.given(value.type, value.data), exact=True)

    def branch(self, fill: Callable[[Block], list[Value]]) -> list[Value]:
        flag = self.flag()
        inner = Block(self.program, self, "If")
        held = [inner.own(value) for value in inner.some(fill(inner))]
        opposite = Block(self.program, self, "If")
        others = [opposite.own(opposite.other(value)) for value in held]
        pair = [(inner, held), (opposite, others)]
        if self.program.chance():
            pair.reverse()
        graphs = [block.graph([], values) for block, values in pair]
        made = [
            replace(a, name=self.program.fresh("t"), exact=a.exact and b.exact,
                    loose=a.loose or b.loose)
            for a, b in zip(held, others, strict=True)
        ]  # fmt: skip
        self.nodes.append(
            helper.make_node(
                "If", [flag], [value.name for value in made],
                then_branch=graphs[0], else_branch=graphs[1],
            )
        )  # fmt: skip
        return made

    def split(self, made: Sequence[Value], body: Block) -> tuple[list[Value], list[Value]]:
        """Which of the values a body gives as states, and which ones stacked."""
        stacks = []
        for value in made:
            if value.is_tensor and not value.loose and self.program.chance():
                stacks.append(body.own(value))
            else:
                first = self.other(value, body.role == "Loop")
                body.states.append((self.program.fresh("s"), replace(value, name=first.name)))
                body.values.append(replace(value, name=value.name))
        return [body.next(name, first, made) for name, first in body.states], stacks

    def next(self, name: str, first: Value, made: Sequence[Value]) -> Value:
        """The state of the next iteration."""
        fitting = [value for value in made if value.fits(first.type, first.data)]
        floats = first.is_tensor and _is_float(first.element)
        if floats and fitting and self.program.chance():
            return self.own(self.program.choose(fitting))
        if self.program.chance(4):
            return self.own(replace(first, name=self.given(first.type, _varied(first.data, 1))))
        return self.own(replace(first, name=name))

    def loop(self, fill: Callable[[Block], list[Value]]) -> list[Value]:
        program = self.program
        body = Block(program, self, "Loop", number=program.fresh("i"))
        still = program.fresh("g")
        nexts, stacks = self.split(body.some(fill(body)), body)
        on = body.op("Identity", [still])
        if program.chance(3):
            last = body.constant(np.array(program.draw(st.integers(0, 2)), np.int64))
            on = body.op("Less", [body.number, last])
        boolean = helper.make_tensor_type_proto(TensorProto.BOOL, [])
        integer = helper.make_tensor_type_proto(TensorProto.INT64, [])
        ends = [Value(name, boolean, np.array(True)) for name in (still, on)]
        inputs = [
            Value(body.number, integer, np.array(0)),
            ends[0],
            *(replace(first, name=name, loose=True) for name, first in body.states),
        ]
        graph = body.graph(inputs, [ends[1], *nexts, *stacks])
        # The sizes of a stack of no iteration differ by what each engine knows of them.
        least = 1 if stacks else 0
        count = program.draw(st.integers(least, MAX_TRIPS))
        given = ROUNDS if stacks else TRIPS
        trips = self.constant(np.array(count, np.int64)) if program.chance() else given
        go = program.choose(["", "", self.flag()]) if not stacks else ""
        given = [trips, go, *(first.name for _, first in body.states)]
        made = [replace(value, name=program.fresh("t"), loose=True) for value in nexts]
        made = [replace(value, exact=all(v.exact for v in made)) for value in made]
        for value in stacks:
            whole = np.stack([value.data] * max(count, 1))
            made.append(replace(value, name=program.fresh("t"), data=whole, loose=True))
        self.nodes.append(helper.make_node("Loop", given, [v.name for v in made], body=graph))
        return made

    def scan(self, fill: Callable[[Block], list[Value]]) -> list[Value]:
        program = self.program
        body = Block(program, self, "Scan", length=program.draw(st.integers(1, 3)))
        filled = [value for value in fill(body) if value.is_tensor and not value.loose]
        if not body.slices:
            data = np.zeros((), np.float32)
            body.slice(helper.make_tensor_type_proto(TensorProto.FLOAT, []), data)
        nexts, stacks = self.split(body.some(filled) if filled else [], body)
        if not stacks:
            name, part, *_ = body.slices[0]
            stacks = [body.own(replace(part, name=name))]
        inputs = [replace(first, name=name) for name, first in body.states]
        inputs += [replace(whole, name=name) for name, whole, *_ in body.slices]
        graph = body.graph(inputs, [*nexts, *stacks])
        made = [replace(value, name=program.fresh("t")) for value in nexts]
        axes = []
        for value in stacks:
            axis = program.draw(st.integers(0, value.data.ndim))
            whole = np.stack([value.data] * body.length, axis)
            made.append(replace(value, name=program.fresh("t"), data=whole))
            axes.append(axis - whole.ndim * program.chance())
        self.nodes.append(
            helper.make_node(
                "Scan",
                [v.name for _, v in body.states] + [v.name for _, v, *_ in body.slices],
                [value.name for value in made],
                body=graph,
                num_scan_inputs=len(body.slices),
                scan_input_axes=[axis for *_, axis, _ in body.slices],
                scan_input_directions=[way for *_, way in body.slices],
                scan_output_axes=axes,
                scan_output_directions=[int(program.chance()) for _ in axes],
            )
        )
        return made


NESTS = {"if": Block.branch, "loop": Block.loop, "scan": Block.scan}


def _can_fit(value: Value, type: TypeProto) -> bool:
    """Whether the elements of one value may go into another of this type."""
    wide = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
    if not value.is_tensor or not type.HasField("tensor_type"):
        return False
    element = type.tensor_type.elem_type
    return value.element == element or (value.exact and value.element in wide and element in wide)


def _wanted(graph: onnx.GraphProto, operators: set[str]) -> Callable[[Value], bool]:
    """Which earlier values a case accepts: only numbers that it does not take as places or sizes,
    and only values whose rounding does not show."""
    if operators & ILL_CONDITIONED:
        return lambda value: False
    elements = {info.type.tensor_type.elem_type for info in graph.input}
    uniform = len(elements) == 1 and not operators & UNSAFE
    floats = all(_is_float(info.type.tensor_type.elem_type) for info in graph.output)
    smooth = floats and not operators & SHARP

    def wanted(value: Value) -> bool:
        if not value.is_tensor:
            return value.exact
        if not _is_float(value.element):
            return uniform
        return value.data.ndim > 1 and (value.exact or (smooth and value.element in WIDE))

    return wanted


WIDE = (TensorProto.FLOAT, TensorProto.DOUBLE)


def _is_float(element: int) -> bool:
    return element in (*WIDE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _is_exact(info: onnx.ValueInfoProto, operators: set[str]) -> bool:
    return operators <= MOVING or not _is_float(info.type.tensor_type.elem_type)


def _rename(graph: onnx.GraphProto, new: Callable[[str], str]) -> None:
    """Gives everything in a graph and its bodies another name, in place."""
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = new(value.name)
    for node in graph.node:
        for names in (node.input, node.output):
            for at, name in enumerate(names):
                names[at] = name and new(name)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _rename(attribute.g, new)


def _fill(block: Block, levels: Sequence[str], cases: Sequence[tuple[Case, int]]) -> list[Value]:
    """Some cases here. Others stand deeper, by as many levels as they ask for."""
    here = [case for case, depth in cases if depth <= 0]
    made = [value for case in here for value in block.case(case)]
    further = [(case, depth - 1) for case, depth in cases if depth > 0]
    if further:
        nested = NESTS[levels[0]](block, lambda inner: _fill(inner, levels[1:], further))
        block.values += nested
        made += nested
    return made


@st.composite
def case_programs(
    draw: Callable[[st.SearchStrategy[Any]], Any],
    further: Callable[[], Mapping[str, list[Case]]] = dict,
) -> CaseProgram:
    """A program of three cases; about half of them are `further` ones if there are any. All results
    at the top are outputs."""
    program = Program(draw, draw(st.sampled_from(OPSETS)))
    known = at_opset(program.opset)
    stems = list(known)
    others = further()

    def some_case() -> Case:
        if others and program.chance():
            return program.choose(others[program.choose(list(others))])
        return program.choose(known[program.choose(stems)])

    depth = draw(st.sampled_from([1, 1, 2, 2, 3, 3, 6]))
    levels = [program.choose(list(NESTS)) for _ in range(depth)]
    cases = [(some_case(), draw(st.integers(0, depth))) for _ in range(2)]
    cases.append((some_case(), depth))
    top = Block(program)
    outputs = [_out(top, value) for value in _fill(top, levels, cases)]
    graph = top.graph([], [])
    used = {name for name in _read(graph)}
    flag = helper.make_tensor_type_proto(TensorProto.BOOL, [])
    number = helper.make_tensor_type_proto(TensorProto.INT64, [])
    types = {name: value.type for name, value in program.inputs.items()}
    types |= dict.fromkeys(FLAGS, flag) | dict.fromkeys((TRIPS, ROUNDS), number)
    graph.input.extend(helper.make_value_info(n, t) for n, t in types.items() if n in used)
    graph.output.extend(top.info(value) for value in outputs)
    if program.chance(4):
        shuffle(graph, draw(st.integers(0, 99)))
    imports = [helper.make_opsetid("", program.opset)]
    if program.functions:
        imports.append(helper.make_opsetid("local", 1))
    domains = {domain for domain in _domains(graph) if domain in VERSIONS}
    imports += [helper.make_opsetid(domain, VERSIONS[domain]) for domain in sorted(domains)]
    version = max(10, helper.find_min_ir_version_for(imports, ignore_unknown=True))
    model = helper.make_model(
        graph, opset_imports=imports, functions=program.functions, ir_version=version
    )
    return CaseProgram(model, {name: value.data for name, value in program.inputs.items()})


def _out(top: Block, value: Value) -> Value:
    carrier = CARRIERS.get(value.element) if value.is_tensor else None
    if carrier is None:
        return value
    name = top.op("Cast", [value.name], to=carrier)
    data = value.data.astype(helper.tensor_dtype_to_np_dtype(carrier))
    return Value(name, helper.make_tensor_type_proto(carrier, None), data, loose=value.loose)


def _domains(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield node.domain
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _domains(attribute.g)


def _read(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _read(attribute.g)
    yield from (value.name for value in graph.output)
