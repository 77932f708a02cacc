"""Random programs on sequences: construct, insert, erase, at, split, concat, in Ifs and Loops.

A drawn program is valid for every feed: a sequence keeps a lower bound of its length, positions
are taken modulo the length, and the kind of a sequence says along which axis it can be joined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

ROWS, VECTORS, COLUMNS = "rows", "vectors", "columns"
"""Elements [k, 3] with k of each its own; [3]; [k, ?] cut from one tensor along axis 1."""


@dataclass(frozen=True)
class Sequence:
    """A sequence in scope: its name, what its elements are, and the least length it can have."""

    name: str
    kind: str
    least: int


@dataclass
class Scope:
    """What statements can use, and the nodes made so far. A body sees its parent's values."""

    tensors: list[str]
    sequences: list[Sequence]
    flags: list[str]
    integers: list[str]
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def inner(self) -> Scope:
        return Scope(
            list(self.tensors), list(self.sequences), list(self.flags), list(self.integers)
        )


@dataclass(frozen=True)
class SequenceProgram:
    """A model and feeds for it by seed."""

    model: onnx.ModelProto

    def feed(self, seed: int) -> dict[str, np.ndarray]:
        random = np.random.default_rng(seed)
        rows, more = random.integers(1, 5, 2)
        return {
            "x": random.standard_normal((rows, 3)).astype(np.float32),
            "y": random.standard_normal((more, 3)).astype(np.float32),
            "i": np.array(random.integers(0, 5), np.int64),
            "p": np.array(random.integers(0, 2) == 1),
            "q": np.array(seed % 2 == 1),
        }


class Writer:
    """Draws statements. Names are unique over the whole program."""

    def __init__(self, draw: Callable) -> None:
        self.draw = draw
        self.count = 0

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def pick(self, options: list) -> object:
        return self.draw(st.sampled_from(options))

    def op(self, scope: Scope, type: str, inputs: list[str], stem: str, **attributes) -> str:
        name = self.fresh(stem)
        scope.nodes.append(helper.make_node(type, inputs, [name], **attributes))
        return name

    def constant(self, scope: Scope, value: object, dtype: type = np.int64) -> str:
        tensor = onnx.numpy_helper.from_array(np.array(value, dtype))
        return self.op(scope, "Constant", [], "k", value=tensor)

    def position(self, scope: Scope, sequence: Sequence, room: int) -> str:
        """A valid position; `room` is 1 where the end counts (insertion)."""
        if self.draw(st.booleans()):
            high = sequence.least - 1 + room
            low = -sequence.least
            return self.constant(scope, self.draw(st.integers(low, high)))
        length = self.op(scope, "SequenceLength", [sequence.name], "n")
        if room:
            length = self.op(scope, "Add", [length, self.constant(scope, room)], "n")
        return self.op(scope, "Mod", [self.pick(scope.integers), length], "m")

    def element(self, scope: Scope, kind: str) -> str:
        """A tensor that can be an element of a sequence of this kind."""
        tensor = self.tensor(scope)
        if kind == ROWS:
            return tensor
        axes = self.constant(scope, [0])
        total = self.op(scope, "ReduceSum", [tensor, axes], "v", keepdims=0)
        return self.op(scope, "Tanh", [total], "v")

    def tensor(self, scope: Scope) -> str:
        """A tensor [k, 3] with at least one row."""
        name = self.pick(scope.tensors)
        match self.draw(st.integers(0, 3)):
            case 0:
                return self.op(scope, "Tanh", [name], "t")
            case 1:
                half = self.constant(scope, 0.5, np.float32)
                return self.op(scope, "Mul", [name, half], "t")
        return name

    def make(self, scope: Scope) -> Sequence:
        """A new sequence."""
        match self.draw(st.integers(0, 5)):
            case 0 | 1:
                kind = self.pick([ROWS, VECTORS])
                items = [self.element(scope, kind) for _ in range(self.draw(st.integers(1, 3)))]
                name = self.op(scope, "SequenceConstruct", items, "s")
                return Sequence(name, kind, len(items))
            case 2:
                empty = self.op(scope, "SequenceEmpty", [], "s", dtype=TensorProto.FLOAT)
                kind = self.pick([ROWS, VECTORS])
                item = self.element(scope, kind)
                return Sequence(self.op(scope, "SequenceInsert", [empty, item], "s"), kind, 1)
            case 3:
                size = self.draw(st.integers(1, 2))
                split = self.constant(scope, size)
                name = self.op(scope, "SplitToSequence", [self.tensor(scope), split], "s", axis=0)
                return Sequence(name, ROWS, 1)
            case 4:
                axis, kind = self.pick([(0, VECTORS), (-2, VECTORS)])
                name = self.op(
                    scope, "SplitToSequence", [self.tensor(scope)], "s", axis=axis, keepdims=0
                )
                return Sequence(name, kind, 1)
        sizes = self.pick([[1, 2], [3, 0], [1, 1, 1], 2, 1])
        split = self.constant(scope, sizes)
        name = self.op(
            scope, "SplitToSequence", [self.tensor(scope), split], "s", axis=self.pick([1, -1])
        )
        parts = len(sizes) if isinstance(sizes, list) else -(-3 // sizes)
        return Sequence(name, COLUMNS, parts)

    def change(self, scope: Scope, sequence: Sequence) -> Sequence:
        """The sequence with an element more or less; never shorter than it may be."""
        if sequence.kind != COLUMNS and (sequence.least < 2 or self.draw(st.booleans())):
            inputs = [sequence.name, self.element(scope, sequence.kind)]
            if self.draw(st.booleans()):
                inputs.append(self.position(scope, sequence, 1))
            name = self.op(scope, "SequenceInsert", inputs, "s")
            return Sequence(name, sequence.kind, sequence.least + 1)
        if sequence.least < 2:
            return sequence
        inputs = [sequence.name]
        if self.draw(st.booleans()):
            inputs.append(self.position(scope, sequence, 0))
        name = self.op(scope, "SequenceErase", inputs, "s")
        return Sequence(name, sequence.kind, sequence.least - 1)

    def use(self, scope: Scope, sequence: Sequence) -> None:
        """A tensor [k, 3] or a number from a sequence."""
        choice = self.draw(st.integers(0, 2))
        if choice == 0:
            scope.integers.append(self.op(scope, "SequenceLength", [sequence.name], "n"))
        elif choice == 1 and sequence.kind != COLUMNS:
            at = self.position(scope, sequence, 0)
            item = self.op(scope, "SequenceAt", [sequence.name, at], "e")
            if sequence.kind == VECTORS:
                item = self.op(scope, "Unsqueeze", [item, self.constant(scope, [0])], "e")
            scope.tensors.append(item)
        elif sequence.kind == COLUMNS:
            axis = self.pick([1, -1])
            joined = self.op(scope, "ConcatFromSequence", [sequence.name], "c", axis=axis)
            total = self.op(scope, "ReduceSum", [joined, self.constant(scope, [1])], "c")
            wide = self.constant(scope, [1, 3])
            scope.tensors.append(self.op(scope, "Tile", [total, wide], "c"))
        elif sequence.kind == VECTORS:
            if self.draw(st.booleans()):
                scope.tensors.append(
                    self.op(scope, "ConcatFromSequence", [sequence.name], "c", axis=0, new_axis=1)
                )
                return
            axis = self.pick([1, -1])
            name = self.op(
                scope, "ConcatFromSequence", [sequence.name], "c", axis=axis, new_axis=1
            )
            scope.tensors.append(self.op(scope, "Transpose", [name], "c", perm=[1, 0]))
        else:
            axis = self.pick([0, -2])
            scope.tensors.append(
                self.op(scope, "ConcatFromSequence", [sequence.name], "c", axis=axis)
            )

    def statement(self, scope: Scope, depth: int) -> None:
        choice = self.draw(st.integers(0, 9))
        if not scope.sequences or choice < 2:
            scope.sequences.append(self.make(scope))
        elif choice < 4:
            scope.sequences.append(self.change(scope, self.pick(scope.sequences)))
        elif choice < 6 or depth == 0:
            self.use(scope, self.pick(scope.sequences))
        elif choice < 8:
            self.branch(scope, depth - 1)
        else:
            self.loop(scope, depth - 1)

    def block(self, scope: Scope, depth: int) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(scope, depth)

    def branch(self, scope: Scope, depth: int) -> None:
        kind = self.pick([ROWS, VECTORS])
        graphs, least = [], []
        for title in ("then", "else"):
            inner = scope.inner()
            self.block(inner, depth)
            fitting = [s for s in inner.sequences if s.kind == kind]
            if not fitting:
                item = self.element(inner, kind)
                name = self.op(inner, "SequenceConstruct", [item], "s")
                fitting = [Sequence(name, kind, 1)]
            chosen = self.pick(fitting)
            names = [
                self.op(inner, "Identity", [chosen.name], "o"),
                self.op(inner, "Identity", [self.tensor(inner)], "o"),
            ]
            outputs = [sequence_info(names[0]), tensor_info(names[1])]
            graphs.append(helper.make_graph(inner.nodes, self.fresh(title), [], outputs))
            least.append(chosen.least)
        names = [self.fresh("s"), self.fresh("t")]
        scope.nodes.append(
            helper.make_node(
                "If", [self.pick(scope.flags)], names, then_branch=graphs[0], else_branch=graphs[1]
            )
        )
        scope.sequences.append(Sequence(names[0], kind, min(least)))
        scope.tensors.append(names[1])

    def loop(self, scope: Scope, depth: int) -> None:
        start = self.pick(scope.sequences)
        inner = scope.inner()
        count, again, state = self.fresh("j"), self.fresh("g"), self.fresh("s")
        inner.integers.append(count)
        inner.sequences.append(Sequence(state, start.kind, start.least))
        self.block(inner, depth)
        last = Sequence(state, start.kind, start.least)
        for _ in range(self.draw(st.integers(0, 2))):
            changed = self.change(inner, last)
            last = changed if changed.least >= start.least else last
        out = [self.op(inner, "Identity", [again], "g"), self.op(inner, "Identity", [last.name], "s")]
        width = self.op(inner, "SequenceLength", [last.name], "n")
        body = helper.make_graph(
            inner.nodes,
            self.fresh("body"),
            [
                helper.make_tensor_value_info(count, TensorProto.INT64, []),
                helper.make_tensor_value_info(again, TensorProto.BOOL, []),
                sequence_info(state),
            ],
            [
                helper.make_tensor_value_info(out[0], TensorProto.BOOL, []),
                sequence_info(out[1]),
                helper.make_tensor_value_info(width, TensorProto.INT64, []),
            ],
        )
        trips = self.pick([self.constant(scope, self.draw(st.integers(0, 3))), "i"])
        names = [self.fresh("s"), self.fresh("w")]
        scope.nodes.append(helper.make_node("Loop", [trips, "", start.name], names, body=body))
        scope.sequences.append(Sequence(names[0], start.kind, start.least))
        total = self.op(scope, "ReduceSum", [names[1]], "w", keepdims=0)
        scope.integers.append(total)


def sequence_info(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)


def tensor_info(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None])


@st.composite
def sequence_programs(draw: Callable) -> SequenceProgram:
    """A valid program; several of its sequences and tensors are outputs."""
    writer = Writer(draw)
    scope = Scope(["x", "y"], [], ["p", "q"], ["i"])
    for _ in range(draw(st.integers(1, 6))):
        writer.statement(scope, 2)
    for _ in range(2):
        if scope.sequences:
            writer.use(scope, writer.pick(scope.sequences))
    tensor = writer.op(scope, "Identity", [scope.tensors[-1]], "out")
    number = writer.op(scope, "Identity", [scope.integers[-1]], "out")
    outputs = [tensor_info(tensor), helper.make_tensor_value_info(number, TensorProto.INT64, None)]
    if scope.sequences:
        chosen = writer.pick(scope.sequences)
        name = writer.op(scope, "Identity", [chosen.name], "out")
        outputs.append(sequence_info(name))
    float3 = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [f"rows_{n}", 3]) for n in "xy"]
    inputs = [
        *float3,
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("p", TensorProto.BOOL, []),
        helper.make_tensor_value_info("q", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph(scope.nodes, "sequences", inputs, outputs)
    opset = draw(st.sampled_from([16, 17, 21, 24]))
    version = helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version
    )
    return SequenceProgram(model)
