"""The programs of the suite: their axes, and the levels that go together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import onnx

from tests.conformance import bodies
from tests.conformance.cases import Case
from tests.control_flow import ifs, loops, scans
from tests.control_flow.covering import covering
from tests.control_flow.program import Invalid, Program
from tests.control_flow.results import CONSUMERS

Levels = tuple[tuple[str, str], ...]
"""Axes of a program, each with its level."""

PLACES: Mapping[str, Sequence[str]] = {
    "top": (),
    "in an If": ("if",),
    "in a Loop": ("loop",),
    "in a Scan": ("scan",),
    "in a function": ("function",),
    "in a Loop in a Loop": ("loop", "loop"),
    "in a Loop in an If": ("loop", "if"),
    "in an If in a Loop": ("if", "loop"),
    "in an If in a Scan": ("if", "scan"),
}
"""The place of a program: the control flow around it, innermost first."""


@dataclass(frozen=True)
class Kind:
    """A kind of control flow: its axes, and the function that builds a program from their levels.
    Every combination of the `core` axes runs; the other axes take turns."""

    axes: Mapping[str, Sequence[str]]
    build: Callable[..., Program]
    core: tuple[str, ...]


KINDS: Mapping[str, Kind] = {
    "loop": Kind(loops.AXES, loops.build, ("trips", "first", "again", "states", "stack")),
    "scan": Kind(scans.AXES, scans.build, ("length", "sliced", "states", "stack", "part")),
    "if": Kind(ifs.AXES, ifs.build, ("condition", "then", "otherwise", "data")),
}


@dataclass(frozen=True)
class Entry:
    """A program of the suite: its levels, for the axes of its kind and for `place`."""

    kind: str
    levels: Levels

    @property
    def name(self) -> str:
        """The kind and the levels."""
        return f"{self.kind}: " + ", ".join(f"{axis} {level}" for axis, level in self.levels)

    @classmethod
    def named(cls, name: str, axes: Iterable[str]) -> Entry:
        """The program with a name as a run prints it; the axes are its parts."""
        kind, _, levels = name.partition(": ")
        parts = re.split(rf", (?=(?:{'|'.join(axes)}) )", levels)
        return cls(
            kind, tuple((axis, level) for axis, _, level in (p.partition(" ") for p in parts))
        )

    def program(self) -> Program:
        """The program itself, at the top."""
        levels = {axis: level for axis, level in self.levels if axis != "place"}
        return KINDS[self.kind].build(**levels)

    @property
    def place(self) -> str:
        """The place of the program."""
        return dict(self.levels).get("place", "top")


def entries(strength: int | None, kinds: Sequence[str] = tuple(KINDS)) -> Iterator[Entry]:
    """The programs that cover every combination of `strength` levels of different axes, if these go
    together. With None, every combination of each kind's core axes, with the other axes in turn."""
    for kind in kinds:
        for levels in _whole(kind) if strength is None else _covering(kind, strength):
            yield Entry(kind, tuple(levels.items()))


def axes_of(kind: str) -> Mapping[str, Sequence[str]]:
    return {**KINDS[kind].axes, "place": tuple(PLACES)}


@cache
def _covering(kind: str, strength: int) -> Sequence[Mapping[str, str]]:
    return tuple(covering(axes_of(kind), partial(_exists, kind), strength))


def _whole(kind: str) -> Iterator[Mapping[str, str]]:
    axes, core = axes_of(kind), KINDS[kind].core
    turns = {axis: 0 for axis in axes if axis not in core}
    for number, combination in enumerate(product(*(axes[axis] for axis in core))):
        given = dict(zip(core, combination, strict=True))
        for shift in range(len(CONSUMERS)):
            for axis in turns:
                levels = axes[axis]
                given[axis] = levels[(number + shift) % len(levels)]
            given["place"] = axes["place"][number // 3 % len(axes["place"])]
            if _exists(kind, given):
                yield {axis: given[axis] for axis in axes}
                break


def _exists(kind: str, levels: Mapping[str, str]) -> bool:
    return _is_built(kind, tuple(levels[axis] for axis in KINDS[kind].axes))


@cache
def _is_built(kind: str, levels: tuple[str, ...]) -> bool:
    try:
        KINDS[kind].build(**dict(zip(KINDS[kind].axes, levels, strict=True)))
    except Invalid:
        return False
    return True


def placed(case: Case, place: str) -> Case:
    """A case with the control flow of its place around it. Raises NoFormError if ONNX has no such
    form."""
    for around in PLACES[place]:
        case = in_function(case) if around == "function" else bodies.wrap(case, around)
    return case


def in_function(case: Case) -> Case:
    """The case as the body of a model-local function, which the model calls."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    opset = next(item.version for item in model.opset_import if not item.domain)
    constants = [
        onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
        for tensor in graph.initializer
    ]
    inputs, outputs = ([item.name for item in items] for items in (graph.input, graph.output))
    function = onnx.helper.make_function(
        "local", "Whole", inputs, outputs, [*constants, *graph.node],
        [onnx.helper.make_opsetid("", opset)],
    )  # fmt: skip
    del graph.node[:], graph.initializer[:]
    graph.node.append(onnx.helper.make_node("Whole", inputs, outputs, domain="local"))
    model.functions.append(function)
    model.opset_import.append(onnx.helper.make_opsetid("local", 1))
    return Case(case.name, model, case.data_sets, case.rtol, case.atol)


def feeds_of(case: Case) -> list[dict[str, Any]]:
    """The inputs of each data set by name."""
    names = [item.name for item in case.model.graph.input]
    return [dict(zip(names, inputs, strict=True)) for inputs, _ in case.data_sets]
