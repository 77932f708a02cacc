"""Draws ONNX programs whose values differ in rank from run to run: If branches, Loop states, and
Squeeze, whose axes depend on sizes.

Numbers are steps of a half and stay so before a condition reads them. So engines that round
differently decide alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st

MAX_RANK = 4
MAX_DEPTH = 3
FLAGS = ("c0", "c1", "c2")
TENSORS = {"x": ("N", 3), "v": (3,), "s": ()}
TRIPS = "trips"


@dataclass(frozen=True)
class Var:
    """A tensor of f32.

    `ranks` are its possible ranks. `rows` says that its shape is the end of [1, 1, N, 3]: two such
    tensors go together in an operator. `exact` says that all engines compute the same elements.
    """

    name: str
    ranks: frozenset[int]
    rows: bool = True
    exact: bool = True


@dataclass(frozen=True)
class RankProgram:
    """A model with the inputs x [N, 3], v [3], s [], three flags and a number of trips."""

    model: onnx.ModelProto

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(onnx.printer.to_text(self.model))

    def feed(self, seed: int) -> dict[str, np.ndarray]:
        """One set of inputs; N is 1 to 3."""
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(1, 4))
        feed: dict[str, np.ndarray] = {}
        for name, shape in TENSORS.items():
            sizes = [rows if dim == "N" else dim for dim in shape]
            feed[name] = np.asarray(rng.integers(-4, 5, sizes) / 2, np.float32)
        for name in FLAGS:
            feed[name] = np.array(bool(rng.integers(0, 2)))
        feed[TRIPS] = np.array(rng.integers(0, 4), np.int64)
        return feed


@dataclass
class Block:
    """A graph under construction, as lines of ONNX's text syntax.

    `around` holds the values it may capture. All blocks of a program share `count`, which numbers
    the names.
    """

    draw: Callable[[st.SearchStrategy[Any]], Any]
    count: Iterator[int]
    around: tuple[Var, ...] = ()
    flags: tuple[str, ...] = FLAGS
    depth: int = 0
    lines: list[str] = field(default_factory=list)
    tensors: list[Var] = field(default_factory=list)

    def choose(self, options: Sequence[Any]) -> Any:
        return options[self.draw(st.sampled_from(range(len(options))))]

    def child(self) -> Block:
        around = (*self.around, *self.tensors)
        return Block(self.draw, self.count, around, self.flags, self.depth + 1)

    def visible(self, wanted: Callable[[Var], bool] = lambda _: True) -> list[Var]:
        """The tensors in reach, the latest first."""
        return [var for var in (*self.around, *self.tensors) if wanted(var)][::-1]

    def fresh(self, prefix: str = "t") -> str:
        return f"{prefix}{next(self.count)}"

    def op(self, text: str, prefix: str = "t") -> str:
        """A node by its text without outputs."""
        name = self.fresh(prefix)
        self.lines.append(f"{name} = {text}")
        return name

    def ints(self, *values: int) -> str:
        return self.op(f"Constant <value_ints = [{', '.join(map(str, values))}]> ()", "k")

    def keep(self, like: Var, text: str, **changes: Any) -> Var:
        var = replace(like, name=self.op(text), **changes)
        self.tensors.append(var)
        return var

    # Statements

    def fill(self, most: int) -> None:
        for _ in range(self.draw(st.integers(1, most))):
            kinds = [self.plain, self.plain, self.pair]
            if self.depth < MAX_DEPTH:
                kinds += [self.branches, self.branches, self.loop, self.scan]
            self.choose(kinds)()

    def plain(self) -> None:
        """An operator on one tensor."""
        var = self.choose(self.visible())
        self.choose(list(self._plain(var)))()

    def _plain(self, var: Var) -> Iterator[Callable[[], Var]]:
        x, ranks = var.name, var.ranks
        least, most = min(ranks), max(ranks)

        def rule(text: str, **changes: Any) -> Callable[[], Var]:
            return lambda: self.keep(var, text, **changes)

        def of(*new: int) -> frozenset[int]:
            return frozenset(new)

        yield rule(f"Neg ({x})")
        yield rule(f"Abs ({x})")
        yield rule(f"Tanh ({x})", exact=False)
        yield rule(f"ReduceSum <keepdims = 0> ({x})", ranks=of(0), rows=True)
        yield rule(f"ReduceMax <keepdims = 1> ({x})", rows=True)
        yield rule(f"Transpose ({x})", rows=False)
        yield rule(f"Flatten <axis = 0> ({x})", ranks=of(2), rows=False)
        yield rule(f"Squeeze ({x})", ranks=of(*range(most + 1)))
        yield lambda: self.keep(var, f"Reshape ({x}, {self.ints(-1)})", ranks=of(1), rows=False)
        yield lambda: self.keep(
            var, f"Reshape ({self.op(f'Neg ({x})')}, {self.op(f'Shape ({x})')})"
        )
        if most < MAX_RANK:
            more = of(*(rank + 1 for rank in ranks))
            yield lambda: self.keep(var, f"Unsqueeze ({x}, {self.ints(0)})", ranks=more)
            yield lambda: self.keep(
                var, f"Unsqueeze ({x}, {self.ints(-1)})", ranks=more, rows=False
            )
        if least > 0:
            yield lambda: self.keep(var, f"ReduceSum <keepdims = 1> ({x}, {self.ints(-1)})")
            yield lambda: self.keep(var, f"Gather <axis = 0> ({x}, {self.ints(0, 0)})", rows=False)
            yield rule(f"Softmax <axis = -1> ({x})", exact=False)
            yield rule(f"Concat <axis = 0> ({x}, {x})", rows=False)
            yield rule(f"Concat <axis = -1> ({x}, {x})", rows=False)
            yield lambda: self.keep(
                var, f"Slice ({x}, {self.ints(0)}, {self.ints(1)}, {self.ints(-1)})", rows=False
            )

    def pair(self) -> None:
        """An operator on two tensors that go together."""
        a = self.choose(self.visible(lambda var: var.rows))
        b = self.choose(self.visible(lambda var: var.rows))
        ranks = frozenset(max(one, other) for one in a.ranks for other in b.ranks)
        like = replace(a, ranks=ranks, exact=a.exact and b.exact)
        op = self.choose(["Add", "Sub", "Max", "Where"])
        if op == "Where":
            self.keep(like, f"Where ({self.flag()}, {a.name}, {b.name})")
        else:
            self.keep(like, f"{op} ({a.name}, {b.name})")

    def flag(self) -> str:
        """A condition: an input, a comparison of data, or a comparison of a rank or size."""
        kinds = [*FLAGS, "rank", "size"]
        exact = self.visible(lambda var: var.exact)
        kinds += ["data"] if exact else []
        kind = self.choose(kinds)
        if kind in FLAGS:
            return str(kind)
        var = self.choose(exact if kind == "data" else self.visible())
        if kind == "data":
            zero = self.op("Constant <value = float {0}> ()", "k")
            return self.op(
                f"Greater ({self.op(f'ReduceSum <keepdims = 0> ({var.name})')}, {zero})", "f"
            )
        number = self.choose(range(4) if kind == "rank" else (1, 3, 5))
        limit = self.op(f"Constant <value = int64 {{{number}}}> ()", "k")
        what = self.op(f"Shape ({var.name})", "k") if kind == "rank" else var.name
        return self.op(f"Less ({self.op(f'Size ({what})', 'k')}, {limit})", "f")

    def hand_out(self, wanted: Callable[[Var], bool] = lambda _: True) -> Var:
        """A tensor that this very block makes."""
        var = self.choose(self.visible(wanted))
        return replace(var, name=self.op(f"Identity ({var.name})"))

    def branches(self) -> None:
        """An If whose branches may have different ranks."""
        flag = self.flag()
        rows = [self.draw(st.booleans()) for _ in range(self.draw(st.integers(1, 2)))]
        bodies, given = [], []
        for role in ("then", "else"):
            inner = self.child()
            inner.fill(2)
            held = [inner.hand_out(lambda var, only=only: var.rows or not only) for only in rows]
            bodies.append(f"{role}_branch = {graph(self.fresh('g'), [], held, inner.lines)}")
            given.append(held)
        made = [
            Var(self.fresh(), one.ranks | two.ranks, one.rows and two.rows, one.exact and two.exact)
            for one, two in zip(*given, strict=True)
        ]
        names = ", ".join(var.name for var in made)
        self.lines.append(f"{names} = If ({flag}) <{', '.join(bodies)}>")
        self.tensors += made

    def loop(self) -> None:
        """A Loop whose states have another rank after each iteration, or the same."""
        starts = [self.choose(self.visible()) for _ in range(self.draw(st.integers(1, 2)))]
        inner = self.child()
        anything = frozenset(range(MAX_RANK))
        states = [replace(var, name=self.fresh("p"), ranks=anything) for var in starts]
        inner.tensors += [
            replace(state, name=inner.op(f"Identity ({state.name})")) for state in states
        ]
        inner.fill(2)
        after = [
            inner.hand_out(
                lambda var, start=start: (
                    (var.rows or not start.rows) and (var.exact or not start.exact)
                )
            )
            for start in starts
        ]
        total = inner.op(f"ReduceSum <keepdims = 0> ({inner.choose(inner.visible()).name})")
        number, condition = self.fresh("i"), self.fresh("f")
        again = inner.op(f"Identity ({condition})", "f")
        head = f"int64 {number}, bool {condition}, " + ", ".join(
            f"float[] {var.name}" for var in states
        )
        results = f"bool {again}, " + ", ".join(f"float[] {var.name}" for var in after)
        name = self.fresh("g")
        lines = " ".join(inner.lines)
        body = f"{name} ({head}) => ({results}, float {total}) {{ {lines} }}"
        body = body.replace("(again)", f"(again{number})").replace(
            "bool again,", f"bool again{number},"
        )
        made = [
            replace(start, name=self.fresh(), ranks=anything | start.ranks | one.ranks)
            for start, one in zip(starts, after, strict=True)
        ]
        stack = self.fresh()
        names = ", ".join([*(var.name for var in made), stack])
        given = ", ".join(var.name for var in starts)
        self.lines.append(f'{names} = Loop ({TRIPS}, "", {given}) <body = {body}>')
        # A stack of no iteration is empty, and has no largest element.
        self.tensors += made

    def scan(self) -> None:
        """A Scan over the parts of a tensor along its first axis."""
        wholes = self.visible(lambda var: min(var.ranks) > 0)
        if not wholes:
            return
        whole = self.choose(wholes)
        inner = self.child()
        state, part = self.fresh("p"), self.fresh("p")
        less = frozenset(rank - 1 for rank in whole.ranks)
        for name, ranks in ((state, frozenset({0})), (part, less)):
            inner.keep(Var(name, ranks, ranks == {0}, whole.exact), f"Identity ({name})")
        inner.fill(2)
        outs = [
            inner.op(f"ReduceSum <keepdims = 0> ({inner.choose(inner.visible()).name})")
            for _ in range(2)
        ]
        body = (
            f"{self.fresh('g')} (float {state}, float[] {part}) => "
            f"(float {outs[0]}, float {outs[1]}) {{ {' '.join(inner.lines)} }}"
        )
        first = self.choose(self.visible(lambda var: var.ranks == {0}))
        made, stack = self.fresh(), self.fresh()
        self.lines.append(
            f"{made}, {stack} = Scan <num_scan_inputs = 1, body = {body}> "
            f"({first.name}, {whole.name})"
        )
        self.tensors += [
            Var(made, frozenset({0}), True, False),
            Var(stack, frozenset({1}), False, False),
        ]


def graph(name: str, inputs: Sequence[str], outputs: Sequence[Var], lines: Sequence[str]) -> str:
    results = ", ".join(f"float[] {var.name}" for var in outputs)
    return f"{name} ({', '.join(inputs)}) => ({results}) {{ {' '.join(lines)} }}"


@st.composite
def rank_programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> RankProgram:
    """A program. Its outputs are the last values of open rank and one value of any rank."""
    block = Block(draw, count())
    block.around = tuple(Var(name, frozenset({len(shape)})) for name, shape in TENSORS.items())
    block.branches()
    block.fill(5)
    open_ones = block.visible(lambda var: len(var.ranks) > 1)[:2]
    held = [replace(var, name=block.op(f"Identity ({var.name})")) for var in open_ones]
    held.append(block.hand_out())
    inputs = ["float[N, 3] x", "float[3] v", "float s", f"int64 {TRIPS}"]
    inputs[3:3] = [f"bool {name}" for name in FLAGS]
    text = graph("ranks", inputs, held, block.lines)
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return RankProgram(model)
