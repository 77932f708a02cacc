"""Chains of two to four operators with any attributes: OpenVINO merges neighbours, drops them or
exchanges them, and each pair may be one that it gets wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.conformance.bodies import wrap
from tests.conformance.cases import Case
from tests.programs.blocks import Draw

OPSET, IR_VERSION = 21, 10
SHAPES = [(2, 3, 4, 4), (2, 3, 4), (3, 4), (1, 4, 2, 2), (1, 3, 1), (6,), (2, 4, 1, 3), (4, 1)]
PLACES = ["known", "open batch", "open", "if"]
MOST_AXES, MOST_ELEMENTS = 6, 2000

Shape = tuple[int, ...]


@dataclass
class Chain:
    """Nodes one behind the other, of which each takes the result of the one before."""

    choose: Callable[[Sequence[Any]], Any]
    shape: Shape
    name: str = "x"
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def axis(self) -> int:
        return int(self.choose(range(self.rank)))

    def some(self, count: int, rank: int) -> list[int]:
        """So many different axes, in any order."""
        left = list(range(rank))
        return [left.pop(self.choose(range(len(left)))) for _ in range(min(count, rank))]

    def signed(self, axes: Sequence[int], rank: int) -> list[int]:
        """The axes, perhaps counted from the end."""
        return [axis - rank if self.choose([False, False, True]) else axis for axis in axes]

    def constant(self, values: Any, dtype: Any = np.int64) -> str:
        self.constants.append(numpy_helper.from_array(np.array(values, dtype), self._fresh("c")))
        return self.constants[-1].name

    def weights(self, *shape: int) -> str:
        """Eighths, none of them 0."""
        numbers = np.arange(math.prod(shape)) * 7 % 11 + 1
        return self.constant((numbers * np.where(numbers % 3, 1, -1) / 8).reshape(shape), "f4")

    def add(
        self, op: str, *others: str, shape: Shape | None = None, first: str = "", **attributes: Any
    ) -> str:
        """A node of the last result and other operands, which gives the next one."""
        made = self._fresh("v")
        inputs = [first, self.name] if first else [self.name, *others]
        self.nodes.append(helper.make_node(op, inputs, [made], **attributes))
        self.name, self.shape = made, self.shape if shape is None else shape
        return made

    def _fresh(self, letter: str) -> str:
        return f"{letter}{len(self.nodes)}_{len(self.constants)}"


def _reduction(chain: Chain) -> None:
    op = chain.choose(["ReduceMax", "ReduceMean", "ReduceSum", "ReduceL2", "ReduceL1", "ReduceMin"])
    axes = sorted(chain.some(chain.choose([1, 1, 2]), chain.rank))
    keep = chain.choose([0, 1])
    sizes = enumerate(chain.shape)
    shape = tuple(1 if at in axes else size for at, size in sizes if keep or at not in axes)
    asked = chain.constant(chain.signed(axes, chain.rank))
    chain.add(op, asked, shape=shape, keepdims=keep)


def _reshape(chain: Chain) -> None:
    rest, sizes = math.prod(chain.shape), []
    if chain.choose([False, True]):  # the same sizes, with other ones between
        sizes = [size for size in chain.shape if size > 1]
        for _ in range(chain.choose([0, 1, 2])):
            sizes.insert(chain.choose(range(len(sizes) + 1)), 1)
    else:
        for _ in range(chain.choose([0, 1, 2, 3])):
            sizes.append(chain.choose([n for n in range(1, rest + 1) if rest % n == 0]))
            rest //= sizes[-1]
        sizes.append(rest)
    shape = tuple(sizes or [1])
    asked = [
        0 if size == own and chain.choose([False, False, True]) else size
        for size, own in zip(shape, (*chain.shape, *[0] * len(shape)), strict=False)
    ]
    if chain.choose([False, True]):
        asked[chain.choose(range(len(asked)))] = -1
    chain.add("Reshape", chain.constant(asked), shape=shape)


def _unsqueeze(chain: Chain) -> None:
    rank = chain.rank + chain.choose([1, 1, 2])
    new = sorted(chain.some(rank - chain.rank, rank))
    sizes = iter(chain.shape)
    shape = tuple(1 if at in new else next(sizes) for at in range(rank))
    chain.add("Unsqueeze", chain.constant(chain.signed(new, rank)), shape=shape)


def _squeeze(chain: Chain) -> None:
    ones = [at for at, size in enumerate(chain.shape) if size == 1]
    if ones:
        gone = ones[: chain.choose(range(1, len(ones) + 1))]
        shape = tuple(size for at, size in enumerate(chain.shape) if at not in gone)
        chain.add("Squeeze", chain.constant(chain.signed(gone, chain.rank)), shape=shape)


def _transpose(chain: Chain) -> None:
    order = chain.some(chain.rank, chain.rank)
    chain.add("Transpose", shape=tuple(chain.shape[at] for at in order), perm=order)


def _slice(chain: Chain) -> None:
    at = chain.axis()
    start, end, step = chain.choose([(0, 1, 1), (1, 9, 1), (-1, -9, -1), (0, 9, 2), (0, -1, 1)])
    size = len(range(*slice(start, None if end < -8 else end, step).indices(chain.shape[at])))
    if size:
        shape = (*chain.shape[:at], size, *chain.shape[at + 1 :])
        bounds = [chain.constant([n]) for n in (start, end, at, step)]
        chain.add("Slice", *bounds, shape=shape)


def _gather(chain: Chain) -> None:
    at = chain.axis()
    size = chain.shape[at]
    index = chain.choose([0, -1, [0], [-1, 0], [[0, -1]], [*range(size)], [*range(size)][::-1]])
    shape = (*chain.shape[:at], *np.shape(index), *chain.shape[at + 1 :])
    chain.add("Gather", chain.constant(index), shape=shape, axis=at)


def _concat(chain: Chain) -> None:
    at, itself = chain.axis(), chain.choose([False, True])
    more = chain.shape if itself else (*chain.shape[:at], 2, *chain.shape[at + 1 :])
    shape = (*chain.shape[:at], chain.shape[at] + more[at], *chain.shape[at + 1 :])
    other = chain.name if itself else chain.weights(*more)
    first = other if chain.choose([False, True]) else ""
    chain.add("Concat", other, shape=shape, first=first, axis=at)


def _tile(chain: Chain) -> None:
    at = chain.axis()
    repeats = [2 if place == at else 1 for place in range(chain.rank)]
    shape = tuple(map(math.prod, zip(chain.shape, repeats, strict=True)))
    chain.add("Tile", chain.constant(repeats), shape=shape)


def _expand(chain: Chain) -> None:
    more = (2,) * chain.choose([0, 1])
    sizes = [chain.choose([1, 2]) if size == 1 else size for size in chain.shape]
    chain.add("Expand", chain.constant([*more, *sizes]), shape=(*more, *sizes))


def _pad(chain: Chain) -> None:
    at, ends = chain.axis(), [0] * (2 * chain.rank)
    before, after = chain.choose([(0, 1), (1, 0), (1, 1), (0, -1), (2, 1)])
    size = chain.shape[at] + before + after
    if size > 0:
        ends[at], ends[at + chain.rank] = before, after
        shape = (*chain.shape[:at], size, *chain.shape[at + 1 :])
        mode = chain.choose(["constant", "edge"])
        chain.add("Pad", chain.constant(ends), shape=shape, mode=mode)


def _arithmetic(chain: Chain) -> None:
    """With itself, or with a constant of as many axes, fewer or more."""
    op = chain.choose(["Add", "Mul", "Sub", "Div", "Max", "Min"])
    last, rank = chain.shape[-1], chain.rank
    channels = (chain.shape[1], *[1] * (rank - 2)) if rank > 1 else (1,)
    one = [(), (1,), (1,) * rank, (1,) * (rank + 1)]
    several = [(last,), chain.shape, channels, (*[1] * (rank - 1), last), (2, *[1] * rank)]
    form = chain.choose([*one, *several, None])
    if form is None:
        chain.add(op, chain.name)
        return
    other = chain.weights(*form)
    shape = np.broadcast_shapes(chain.shape, form)
    chain.add(op, other, shape=shape, first=other if chain.choose([0, 0, 1]) else "")


def _activation(chain: Chain) -> None:
    numbers = ["Relu", "Abs", "Sigmoid", "Tanh", "Neg", "Exp", "HardSwish", "Elu", "Softplus"]
    chain.add(chain.choose([*numbers, "LeakyRelu", "Erf", "Gelu", "Identity", "HardSigmoid"]))


def _clip(chain: Chain) -> None:
    low, high = chain.choose([(-0.5, 1.0), (0.0, 6.0), (None, 1.0), (0.25, None)])
    bounds = ["" if end is None else chain.constant(end, "f4") for end in (low, high)]
    chain.add("Clip", *bounds)


def _product(chain: Chain) -> None:
    """With constants of one to three axes, on either side, or with itself."""
    *before, size = chain.shape
    form = chain.choose(["vector", "matrix", "left", "vector on the left", "itself"])
    if form == "vector":
        chain.add("MatMul", chain.weights(size), shape=tuple(before))
    elif form == "matrix" or not before:
        chain.add("MatMul", chain.weights(size, 3), shape=(*before, 3))
    elif form == "left":
        shape = (*before[:-1], 3, size)
        chain.add("MatMul", shape=shape, first=chain.weights(3, before[-1]))
    elif form == "vector on the left":
        shape = (*before[:-1], size)
        chain.add("MatMul", shape=shape, first=chain.weights(before[-1]))
    elif before[-1] == size:
        chain.add("MatMul", chain.name)


def _window(chain: Chain) -> None:
    if chain.rank not in (3, 4):
        return
    batch, channels, *sizes = chain.shape
    form = chain.choose(["Conv", "depthwise", "ConvTranspose", "MaxPool", "AveragePool", "Global"])
    if form == "Conv":
        chain.add("Conv", chain.weights(4, channels, *[1 for _ in sizes]), shape=(batch, 4, *sizes))
    elif form == "depthwise":
        kernel = chain.weights(channels, 1, *[3 for _ in sizes])
        chain.add("Conv", kernel, group=channels, pads=[1] * (2 * len(sizes)))
    elif form == "ConvTranspose":
        kernel = chain.weights(channels, 2, *[2 for _ in sizes])
        shape = (batch, 2, *(2 * size for size in sizes))
        chain.add("ConvTranspose", kernel, shape=shape, strides=[2 for _ in sizes])
    elif form == "Global":
        chain.add("GlobalAveragePool", shape=(batch, channels, *[1 for _ in sizes]))
    elif min(sizes) > 1:
        shape = (batch, channels, *(size - 1 for size in sizes))
        chain.add(form, shape=shape, kernel_shape=[2 for _ in sizes])


def _normalization(chain: Chain) -> None:
    form = chain.choose(["Softmax", "LogSoftmax", "LpNormalization", "Layer", "Batch"])
    if form == "Layer":
        chain.add("LayerNormalization", chain.weights(chain.shape[-1]), axis=-1, epsilon=1e-2)
    elif form == "Batch" and chain.rank > 1:
        parts = [chain.weights(chain.shape[1]) for _ in range(3)]
        spread = chain.constant(np.full(chain.shape[1], 0.75), "f4")
        chain.add("BatchNormalization", *parts, spread)
    elif form in ("Softmax", "LogSoftmax", "LpNormalization"):
        chain.add(form, axis=chain.axis())


def _scan(chain: Chain) -> None:
    ends = {"exclusive": chain.choose([0, 1]), "reverse": chain.choose([0, 1])}
    chain.add("CumSum", chain.constant(chain.axis()), **ends)


STEPS = (
    *[_reduction, _reshape, _transpose, _arithmetic, _product] * 3,
    *[_unsqueeze, _squeeze, _slice, _gather, _concat, _window, _normalization] * 2,
    *[_tile, _expand, _pad, _activation, _clip, _scan],
)


@dataclass(frozen=True)
class ChainProgram:
    """A model with an input `x` of these sizes. Where it is a branch, `taken` says whether it
    runs: with each input but every fourth."""

    model: onnx.ModelProto
    shape: Shape

    def feed(self, seed: int) -> Mapping[str, np.ndarray]:
        numbers = np.random.default_rng(seed).permutation(2 * math.prod(self.shape))
        some = numbers[: math.prod(self.shape)].reshape(self.shape)
        x = np.clip(some / 8 - math.prod(self.shape) / 8 + 0.03, -4, 4).astype("f4")
        values = {"x": x, "taken": np.array(seed % 4 != 3)}
        return {value.name: values[value.name] for value in self.model.graph.input}


@st.composite
def chain_programs(draw: Draw) -> ChainProgram:
    """A program of two to four steps, at the top or in a branch."""
    chain = Chain(lambda items: items[draw(st.integers(0, len(items) - 1))], ())
    start = chain.shape = chain.choose(SHAPES)
    for _ in range(chain.choose([2, 2, 3, 4])):
        if 0 < chain.rank <= MOST_AXES and math.prod(chain.shape) <= MOST_ELEMENTS:
            chain.choose(STEPS)(chain)
    chain.add("Identity") if not chain.nodes else None
    return ChainProgram(_placed(chain, start, chain.choose(PLACES)), start)


def _placed(chain: Chain, start: Shape, place: str) -> onnx.ModelProto:
    dims: list[int | str] = [*start]
    if place != "known" and place != "if":
        dims = [f"d{at}" if at < 1 or place == "open" else size for at, size in enumerate(start)]
    taken = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    made = helper.make_tensor_value_info(chain.name, TensorProto.FLOAT, [None] * chain.rank)
    graph = helper.make_graph(chain.nodes, "chain", [taken], [made], chain.constants)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    if place != "if":
        return model
    data = (np.zeros(start, np.float32),), (np.zeros(chain.shape, np.float32),)
    return wrap(Case("chain", model, (data,), 0.0, 0.0), place).model
