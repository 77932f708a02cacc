"""Random programs on sequences and optionals.

They construct, insert, erase, read, split, concatenate, and ask whether an optional is present.
They do so in Ifs, Loops and Scans, and with inputs and outputs of the model.

A drawn program is valid for every feed. A sequence keeps a lower bound of its length, and positions
are taken modulo the length. The kind of a sequence says along which axis it can be joined. An
optional is opened only if it is present.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.programs.blocks import one_of

ROWS, VECTORS, COLUMNS, MIXED = "rows", "vectors", "columns", "mixed"
"""The kinds of sequences by their elements: [k, 3] with a k of its own for each element; [3]; [k,
?] cut from one tensor along axis 1; rows, each with a rank of its own."""

KINDS = [ROWS, VECTORS, ROWS, VECTORS, MIXED]
"""The kinds whose elements a program can make one by one."""

RANKS = [[-1], [-1, 3], [1, -1, 3]]
"""Shapes of mixed elements."""

TENSOR = "tensor"
"""The kind of an optional that holds a tensor [k, 3] rather than a sequence."""

OPSETS = [11, 12, 13, 14, 15, 16, 17, 18, 21, 24]
ELEMENTS = [np.float32, np.float32, np.int64, np.bool_, np.float16]


@dataclass(frozen=True)
class Sequence:
    """A sequence in scope: its name, the kind of its elements, and its least possible length."""

    name: str
    kind: str
    least: int


@dataclass(frozen=True)
class Optional:
    """An optional in scope: its name, its content, and the least length of a sequence in it."""

    name: str
    kind: str
    least: int = 1


@dataclass
class Scope:
    """What statements can use, and the nodes made so far. A body sees its parent's values."""

    tensors: list[str]
    sequences: list[Sequence]
    optionals: list[Optional]
    flags: list[str]
    integers: list[str]
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def inner(self) -> Scope:
        return Scope(
            list(self.tensors),
            list(self.sequences),
            list(self.optionals),
            list(self.flags),
            list(self.integers),
        )


@dataclass(frozen=True)
class SequenceProgram:
    """A model and feeds for it by seed: arrays, lists of arrays, None for an absent optional."""

    model: onnx.ModelProto
    dtype: type

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Shows a program that fails; Hypothesis calls this."""
        printer.text(onnx.printer.to_text(self.model))

    def feed(self, seed: int) -> dict[str, Any]:
        random = np.random.default_rng(seed)

        def rows() -> np.ndarray:
            values = random.standard_normal((random.integers(1, 5), 3)) * 2
            return (values > 0 if self.dtype is np.bool_ else values).astype(self.dtype)

        values = {
            "x": rows(),
            "y": rows(),
            "i": np.array(random.integers(0, 5), np.int64),
            "p": np.array(random.integers(0, 2) == 1),
            "q": np.array(seed % 2 == 1),
            "z": [rows() for _ in range(random.integers(1, 4))],
            "o": None if seed % 3 == 1 else rows(),
            "r": None if seed % 3 == 2 else [rows() for _ in range(random.integers(1, 4))],
        }
        return {value.name: values[value.name] for value in self.model.graph.input}


class Writer:
    """Draws statements. Names are unique over the whole program."""

    def __init__(self, draw: Callable, opset: int, dtype: type) -> None:
        self.draw = draw
        self.opset = opset
        self.dtype = dtype
        self.count = 0

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def pick(self, options: list) -> Any:
        return one_of(self.draw, options)

    def chance(self) -> bool:
        return self.draw(st.booleans())

    def op(self, scope: Scope, op: str, inputs: list[str], stem: str, **attributes: Any) -> str:
        name = self.fresh(stem)
        scope.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, scope: Scope, value: object, dtype: type = np.int64) -> str:
        tensor = onnx.numpy_helper.from_array(np.array(value, dtype))
        return self.op(scope, "Constant", [], "k", value=tensor)

    # Types of inputs and outputs of graphs.

    @property
    def element(self) -> int:
        return helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))

    def tensor_type(self) -> onnx.TypeProto:
        return helper.make_tensor_type_proto(self.element, [None, 3])

    def sequence_type(self, shape: list | None = None) -> onnx.TypeProto:
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(self.element, shape))

    def held_type(self, kind: str) -> onnx.TypeProto:
        return self.tensor_type() if kind == TENSOR else self.sequence_type()

    def optional_type(self, kind: str) -> onnx.TypeProto:
        return helper.make_optional_type_proto(self.held_type(kind))

    # Values.

    def changed(self, scope: Scope, name: str) -> str:
        """Another tensor of the same shape."""
        if self.dtype is np.bool_:
            return self.op(scope, "Not", [name], "t")
        if self.dtype is np.int64:
            return self.op(scope, "Neg", [name], "t")
        if self.dtype is np.float32:
            return self.op(scope, "Tanh", [name], "t")
        # onnxruntime computes little in f16.
        wide = self.op(scope, "Cast", [name], "t", to=TensorProto.FLOAT)
        return self.op(
            scope, "Cast", [self.op(scope, "Tanh", [wide], "t")], "t", to=TensorProto.FLOAT16
        )

    def tensor(self, scope: Scope) -> str:
        """A tensor [k, 3] with at least one row."""
        name = self.pick(scope.tensors)
        if self.opset >= 18 and self.draw(st.integers(0, 9)) == 0:
            return self.op(scope, "OptionalGetElement", [name], "t")
        return self.changed(scope, name) if self.chance() else name

    def vector(self, scope: Scope, tensor: str) -> str:
        return self.op(scope, "Gather", [tensor, self.constant(scope, 0)], "v", axis=0)

    def item(self, scope: Scope, kind: str) -> str:
        """A tensor [k, 3] with at least one row."""
        tensor = self.tensor(scope)
        if kind == MIXED:
            return self.op(scope, "Reshape", [tensor, self.constant(scope, self.pick(RANKS))], "e")
        return tensor if kind == ROWS else self.vector(scope, tensor)

    def copy(self, scope: Scope, name: str, kind: str) -> str:
        """A sequence again, under a name of its own."""
        if self.opset >= 14:
            return self.op(scope, "Identity", [name], "o")
        longer = self.op(scope, "SequenceInsert", [name, self.item(scope, kind)], "o")
        return self.op(scope, "SequenceErase", [longer], "o")

    def position(self, scope: Scope, sequence: Sequence, room: int) -> str:
        """A valid position; with `room` 1 the position behind the last element counts too
        (insertion)."""
        if self.chance():
            high = sequence.least - 1 + room
            return self.constant(scope, self.draw(st.integers(-sequence.least, high)))
        length = self.op(scope, "SequenceLength", [sequence.name], "n")
        if room:
            length = self.op(scope, "Add", [length, self.constant(scope, room)], "n")
        return self.op(scope, "Mod", [self.pick(scope.integers), length], "m")

    # Statements on sequences.

    def make(self, scope: Scope) -> Sequence:
        """A new sequence."""
        # onnxruntime splits neither booleans nor f16.
        splits = self.dtype in (np.float32, np.int64)
        match self.draw(st.integers(0, 5 if splits else 2)):
            case 0 | 1:
                kind = self.pick(KINDS)
                items = [self.item(scope, kind) for _ in range(self.draw(st.integers(1, 3)))]
                name = self.op(scope, "SequenceConstruct", items, "s")
                return Sequence(name, kind, len(items))
            case 2:
                empty = self.op(scope, "SequenceEmpty", [], "s", dtype=self.element)
                return Sequence(empty, self.pick(KINDS), 0)
            case 3:
                size = self.pick([1, 2])
                split = self.constant(scope, size)
                name = self.op(scope, "SplitToSequence", [self.tensor(scope), split], "s", axis=0)
                return Sequence(name, ROWS, 1)
            case 4:
                name = self.op(
                    scope,
                    "SplitToSequence",
                    [self.tensor(scope)],
                    "s",
                    axis=self.pick([0, -2]),
                    keepdims=0,
                )
                return Sequence(name, VECTORS, 1)
        sizes = self.pick([[1, 2], [3, 0], [1, 1, 1], 2, 1])
        split = self.constant(scope, sizes)
        axis = self.pick([1, -1])
        name = self.op(scope, "SplitToSequence", [self.tensor(scope), split], "s", axis=axis)
        # At least one part with columns must stay.
        least = sum(size > 0 for size in sizes) if isinstance(sizes, list) else -(-3 // sizes)
        return Sequence(name, COLUMNS, least)

    def change(self, scope: Scope, sequence: Sequence) -> Sequence:
        """The sequence with an element more or less; never shorter than it may be."""
        if sequence.kind != COLUMNS and (sequence.least < 1 or self.chance()):
            inputs = [sequence.name, self.item(scope, sequence.kind)]
            if self.chance():
                inputs.append(self.position(scope, sequence, 1))
            name = self.op(scope, "SequenceInsert", inputs, "s")
            return Sequence(name, sequence.kind, sequence.least + 1)
        # The remaining columns are joined later, so one element stays.
        if sequence.kind == COLUMNS and sequence.least < 2:
            return sequence
        inputs = [sequence.name]
        if self.chance():
            inputs.append(self.position(scope, sequence, 0))
        name = self.op(scope, "SequenceErase", inputs, "s")
        return Sequence(name, sequence.kind, sequence.least - 1)

    def use(self, scope: Scope, sequence: Sequence) -> None:
        """A tensor [k, 3] or a number from a sequence."""
        choice = self.draw(st.integers(0, 2))
        if choice == 0 or sequence.least == 0:
            scope.integers.append(self.op(scope, "SequenceLength", [sequence.name], "n"))
        elif sequence.kind == MIXED or (choice == 1 and sequence.kind != COLUMNS):
            at = self.position(scope, sequence, 0)
            item = self.op(scope, "SequenceAt", [sequence.name, at], "e")
            if sequence.kind == VECTORS:
                item = self.op(scope, "Reshape", [item, self.constant(scope, [1, 3])], "e")
            elif sequence.kind == MIXED:
                item = self.op(scope, "Reshape", [item, self.constant(scope, [-1, 3])], "e")
            scope.tensors.append(item)
        else:
            scope.tensors.append(self.joined(scope, sequence))

    def joined(self, scope: Scope, sequence: Sequence) -> str:
        """All elements in one tensor [k, 3]."""
        if sequence.kind == ROWS:
            axis = self.pick([0, -2])
            return self.op(scope, "ConcatFromSequence", [sequence.name], "c", axis=axis)
        axis = self.pick([1, -1])
        if sequence.kind == COLUMNS:
            whole = self.op(scope, "ConcatFromSequence", [sequence.name], "c", axis=axis)
            first = self.op(scope, "Gather", [whole, self.constant(scope, [0])], "c", axis=1)
            return self.op(scope, "Tile", [first, self.constant(scope, [1, 3])], "c")
        if self.chance():
            axis = 0
        whole = self.op(scope, "ConcatFromSequence", [sequence.name], "c", axis=axis, new_axis=1)
        return whole if axis == 0 else self.op(scope, "Transpose", [whole], "c", perm=[1, 0])

    # Statements on optionals.

    def hold(self, scope: Scope, kind: str) -> Optional:
        """An optional with a value."""
        if kind == TENSOR:
            return Optional(self.op(scope, "Optional", [self.tensor(scope)], "o"), kind)
        fitting = [s for s in scope.sequences if s.kind == kind]
        if fitting:
            sequence = self.pick(fitting)
        else:
            name = self.op(scope, "SequenceConstruct", [self.item(scope, kind)], "s")
            sequence = Sequence(name, kind, 1)
        return Optional(self.op(scope, "Optional", [sequence.name], "o"), kind, sequence.least)

    def optional(self, scope: Scope, kind: str) -> Optional:
        """A new optional, present or absent."""
        if self.opset < 16 or self.chance():
            return self.hold(scope, kind)
        there, absent = scope.inner(), scope.inner()
        held = self.hold(there, kind)
        nothing = self.op(absent, "Optional", [], "o", type=self.held_type(kind))
        type = self.optional_type(kind)
        branches = [
            helper.make_graph(
                inner.nodes, self.fresh(title), [], [helper.make_value_info(name, type)]
            )
            for inner, name, title in ((there, held.name, "there"), (absent, nothing, "absent"))
        ]
        if self.chance():
            branches.reverse()
        name = self.op(
            scope,
            "If",
            [self.pick(scope.flags)],
            "o",
            then_branch=branches[0],
            else_branch=branches[1],
        )
        return Optional(name, kind, held.least)

    def open(self, scope: Scope, optional: Optional) -> None:
        """The content of an optional, or another value if it is absent."""
        present = self.op(scope, "OptionalHasElement", [optional.name], "h")
        scope.flags.append(present)
        if optional.kind != TENSOR and self.opset < 13:
            return
        there, absent = scope.inner(), scope.inner()
        found = self.op(there, "OptionalGetElement", [optional.name], "e")
        if optional.kind == TENSOR:
            other = self.op(absent, "Identity", [self.tensor(absent)], "e")
            stem = "t"
        else:
            items = [self.item(absent, optional.kind) for _ in range(max(1, optional.least))]
            other = self.op(absent, "SequenceConstruct", items, "e")
            stem = "s"
        type = self.held_type(optional.kind)
        graphs = [
            helper.make_graph(
                inner.nodes, self.fresh(title), [], [helper.make_value_info(name, type)]
            )
            for inner, name, title in ((there, found, "there"), (absent, other, "absent"))
        ]
        name = self.op(scope, "If", [present], stem, then_branch=graphs[0], else_branch=graphs[1])
        if optional.kind == TENSOR:
            scope.tensors.append(name)
        else:
            scope.sequences.append(Sequence(name, optional.kind, optional.least))

    # Control flow.

    def statement(self, scope: Scope, depth: int) -> None:
        choice = self.draw(st.integers(0, 12))
        if not scope.sequences or choice < 2:
            scope.sequences.append(self.make(scope))
        elif choice < 4:
            scope.sequences.append(self.change(scope, self.pick(scope.sequences)))
        elif choice < 6:
            self.use(scope, self.pick(scope.sequences))
        elif choice < 8 and self.opset >= 15:
            if not scope.optionals or self.chance():
                scope.optionals.append(self.optional(scope, self.pick([TENSOR, *KINDS])))
            self.open(scope, self.pick(scope.optionals))
        elif depth == 0:
            self.use(scope, self.pick(scope.sequences))
        elif choice < 10:
            self.branch(scope, depth - 1)
        elif choice < 12 and self.opset >= 13:
            self.loop(scope, depth - 1)
        else:
            self.scan(scope, depth - 1)

    def block(self, scope: Scope, depth: int) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(scope, depth)

    def branch(self, scope: Scope, depth: int) -> None:
        kind = self.pick(KINDS)
        graphs, least = [], []
        for title in ("then", "else"):
            inner = scope.inner()
            self.block(inner, depth)
            fitting = [s for s in inner.sequences if s.kind == kind]
            if not fitting:
                item = self.item(inner, kind)
                name = self.op(inner, "SequenceConstruct", [item], "s")
                fitting = [Sequence(name, kind, 1)]
            chosen = self.pick(fitting)
            least.append(chosen.least)
            tensor = self.op(inner, "Identity", [self.tensor(inner)], "o")
            outputs = [helper.make_value_info(tensor, self.tensor_type())]
            if self.opset >= 13:
                name = self.copy(inner, chosen.name, kind)
                outputs.append(helper.make_value_info(name, self.sequence_type()))
            graphs.append(helper.make_graph(inner.nodes, self.fresh(title), [], outputs))
        names = [self.fresh("t"), self.fresh("s")][: len(graphs[0].output)]
        scope.nodes.append(
            helper.make_node(
                "If", [self.pick(scope.flags)], names, then_branch=graphs[0], else_branch=graphs[1]
            )
        )
        scope.tensors.append(names[0])
        if len(names) == 2:
            scope.sequences.append(Sequence(names[1], kind, min(least)))

    def loop(self, scope: Scope, depth: int) -> None:
        """A Loop with a sequence as its state, maybe an optional too; it stacks the lengths."""
        start = self.pick(scope.sequences)
        held = self.pick(scope.optionals) if scope.optionals and self.opset >= 16 else None
        inner = scope.inner()
        count, again, state = self.fresh("j"), self.fresh("g"), self.fresh("s")
        inner.integers.append(count)
        inner.sequences.append(Sequence(state, start.kind, start.least))
        inputs = [
            helper.make_tensor_value_info(count, TensorProto.INT64, []),
            helper.make_tensor_value_info(again, TensorProto.BOOL, []),
            helper.make_value_info(state, self.sequence_type()),
        ]
        if held is not None:
            held = Optional(held.name, held.kind, 0)
            type = self.optional_type(held.kind)
            inputs.append(helper.make_value_info(self.fresh("o"), type))
            inner.optionals.append(Optional(inputs[3].name, held.kind, 0))
        self.block(inner, depth)
        last = Sequence(state, start.kind, start.least)
        for _ in range(self.draw(st.integers(0, 2))):
            changed = self.change(inner, last)
            last = changed if changed.least >= start.least else last
        out = self.copy(inner, last.name, last.kind)
        width = self.op(inner, "SequenceLength", [last.name], "n")
        outputs = [
            helper.make_tensor_value_info(
                self.op(inner, "Identity", [again], "g"), TensorProto.BOOL, []
            ),
            helper.make_value_info(out, self.sequence_type()),
        ]
        names = [self.fresh("s")]
        if held is not None:
            following = self.optional(inner, held.kind).name if self.chance() else inputs[3].name
            copied = self.op(inner, "Identity", [following], "o")
            outputs.append(helper.make_value_info(copied, type))
            names.append(self.fresh("o"))
            scope.optionals.append(Optional(names[1], held.kind, 0))
        outputs.append(helper.make_tensor_value_info(width, TensorProto.INT64, []))
        names.append(self.fresh("w"))
        body = helper.make_graph(inner.nodes, self.fresh("body"), inputs, outputs)
        trips = self.pick([self.constant(scope, self.draw(st.integers(0, 3))), "i"])
        starts = [start.name] if held is None else [start.name, held.name]
        scope.nodes.append(helper.make_node("Loop", [trips, "", *starts], names, body=body))
        scope.sequences.append(Sequence(names[0], start.kind, start.least))
        scope.integers.append(self.op(scope, "ReduceSum", [names[-1]], "w", keepdims=0))

    def scan(self, scope: Scope, depth: int) -> None:
        """A Scan over the rows of a tensor, whose body makes sequences and stacks a row."""
        inner = scope.inner()
        before, row = self.fresh("a"), self.fresh("r")
        shape = self.constant(inner, [1, 3])
        for name in (before, row):
            inner.tensors.append(self.op(inner, "Reshape", [name, shape], "t"))
        self.block(inner, depth)
        vector = helper.make_tensor_type_proto(self.element, [3])
        outputs = [self.vector(inner, self.tensor(inner)) for _ in range(2)]
        body = helper.make_graph(
            inner.nodes,
            self.fresh("body"),
            [helper.make_value_info(name, vector) for name in (before, row)],
            [helper.make_value_info(name, vector) for name in outputs],
        )
        names = [self.fresh("a"), self.fresh("t")]
        inputs = [self.vector(scope, self.tensor(scope)), self.tensor(scope)]
        scope.nodes.append(helper.make_node("Scan", inputs, names, body=body, num_scan_inputs=1))
        scope.tensors.append(names[1])


@st.composite
def sequence_programs(draw: Callable) -> SequenceProgram:
    """A valid program; a tensor, a number, a sequence and maybe an optional are outputs."""
    opset = draw(st.sampled_from(OPSETS))
    writer = Writer(draw, opset, draw(st.sampled_from(ELEMENTS)))
    scope = Scope(["x", "y"], [], [], ["p", "q"], ["i"])
    rows = helper.make_tensor_type_proto(writer.element, [None, 3])
    inputs = [
        *(helper.make_value_info(name, rows) for name in "xy"),
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("p", TensorProto.BOOL, []),
        helper.make_tensor_value_info("q", TensorProto.BOOL, []),
    ]
    sequence = writer.sequence_type([None, 3])
    if draw(st.booleans()):
        inputs.insert(1, helper.make_value_info("z", sequence))
        scope.sequences.append(Sequence("z", ROWS, 1))
    if opset >= 15 and draw(st.booleans()):
        name, type, kind = draw(st.sampled_from([("o", rows, TENSOR), ("r", sequence, ROWS)]))
        inputs.append(helper.make_value_info(name, helper.make_optional_type_proto(type)))
        scope.optionals.append(Optional(name, kind))
    for _ in range(draw(st.integers(1, 6))):
        writer.statement(scope, 2)
    for _ in range(2):
        if scope.sequences:
            writer.use(scope, writer.pick(scope.sequences))
    number = helper.make_tensor_type_proto(TensorProto.INT64, None)
    outputs = [
        helper.make_value_info(writer.op(scope, "Identity", [name], "out"), type)
        for name, type in ((scope.tensors[-1], writer.tensor_type()), (scope.integers[-1], number))
    ]
    if scope.sequences:
        chosen = writer.pick(scope.sequences)
        name = writer.copy(scope, chosen.name, chosen.kind)
        outputs.append(helper.make_value_info(name, writer.sequence_type()))
    if scope.optionals and opset >= 16:
        held = writer.pick(scope.optionals)
        name = writer.op(scope, "Identity", [held.name], "out")
        outputs.append(helper.make_value_info(name, writer.optional_type(held.kind)))
    graph = helper.make_graph(scope.nodes, "sequences", inputs, outputs)
    imports = [helper.make_opsetid("", opset)]
    version = helper.find_min_ir_version_for(imports)
    model = helper.make_model(graph, opset_imports=imports, ir_version=max(version, 8))
    return SequenceProgram(model, writer.dtype)
