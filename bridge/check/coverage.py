"""Branch coverage: seeks inputs that take each branch of every If, and forces the others.

The search is guided by what it finds, as a fuzzer's is: inputs that reached a new branch are
changed further, with sizes and numbers taken from the model's own constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bridge.check.engines import EngineError, Session
from bridge.check.inputs import Recipe, make_inputs
from bridge.check.instrument import OWN, IfSite
from bridge.errors import UsageError
from bridge.neutral.graph import Model, Value
from bridge.neutral.types import TensorType

Results = Mapping[str, Any]
"""The inputs or outputs of a run, by name."""

Branch = tuple[int, bool]
"""The index of an IfSite, and whether its then (or its else) branch is meant."""

_LARGEST_SIZE = 4096  # of a dimension that the search tries


@dataclass
class Exploration:
    """Inputs that the model takes (`feeds`), each branch's first input by its place among them
    (`reached`), and how often the model refused an input, by the engine's message."""

    feeds: list[dict[str, Any]] = field(default_factory=list)
    reached: dict[Branch, int] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)


def explore(
    model: Model,
    session: Session,
    sites: Sequence[IfSite],
    base: Recipe,
    samples: int,
    budget: int,
) -> Exploration:
    """Find `samples` inputs that the model takes and more that reach further branches.

    `model` is the graph without additions; `session` runs it with `IfSite.taken` among its
    outputs. Runs at most `budget` times.
    """
    result = Exploration()
    wanted = {(site.index, branch) for site in sites for branch in (True, False)}
    numbers = _Numbers.of(model)
    rng = np.random.default_rng(base.seed)
    found = _beginnings(base, model, numbers)
    for attempt in range(budget):
        if len(result.feeds) >= samples and not wanted - set(result.reached):
            break
        if attempt < samples:
            recipe = replace(base, seed=base.seed + attempt)
        else:
            recipe = found[int(rng.integers(len(found)))]
            for _ in range(int(rng.integers(1, 5))):
                recipe = _changed(recipe, model, base, numbers, rng)
        try:
            feeds = make_inputs(model, recipe)
        except UsageError:  # too large
            if attempt < samples:
                raise
            continue
        try:
            outputs = session.run(feeds)
        except EngineError as error:
            result.refused[str(error)] += 1
            continue
        new = [
            branch
            for branch in sorted(wanted - set(result.reached))
            if bool(outputs[sites[branch[0]].taken(branch[1])])
        ]
        if new or len(result.feeds) < samples:
            result.reached |= dict.fromkeys(new, len(result.feeds))
            result.feeds.append(feeds)
            found.append(recipe)
    return result


_COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "NotEqual"})


@dataclass(frozen=True)
class _Numbers:
    """Numbers from the model's small constants: those it compares with, and all of them."""

    compared: Sequence[float]
    all: Sequence[float]

    @classmethod
    def of(cls, model: Model) -> _Numbers:
        every, compared = {0.0}, {0.0}
        for node in model.graph.walk():
            for value in node.inputs:
                tensor = value.constant if value is not None else None
                if tensor is None or tensor.size > 8 or tensor.element.kind not in _NUMERIC:
                    continue
                numbers = [float(x) for x in tensor.array().reshape(-1) if np.isfinite(float(x))]
                every.update(numbers)
                if node.op in _COMPARISONS:
                    compared.update(numbers)
        return cls(sorted(compared), sorted(every))

    def draw(self, rng: np.random.Generator) -> float:
        """One of the numbers, or a neighbour of it; half the time one that is compared with."""
        some = self.compared if rng.integers(2) else self.all
        return some[int(rng.integers(len(some)))] + float(rng.choice([0, 0, -1, 1]))


_NUMERIC = frozenset({"int", "uint", "float"})


def _beginnings(base: Recipe, model: Model, numbers: _Numbers) -> list[Recipe]:
    """`base`, and `base` with an integer input at a number that the model compares with."""
    integers = [
        v.name
        for v in model.graph.inputs
        if v.element is not None and v.element.kind in ("int", "uint", "bool")
    ]
    fills = [
        {name: number} for name in integers for number in numbers.compared if name not in base.fills
    ]
    return [base, *(replace(base, fills={**base.fills, **fill}) for fill in fills[:_BEGINNINGS])]


_BEGINNINGS = 32


def _changed(
    recipe: Recipe, model: Model, base: Recipe, numbers: _Numbers, rng: np.random.Generator
) -> Recipe:
    """A recipe that differs from `recipe` in one choice; what `base` fixes stays."""
    inputs = [v for v in model.graph.inputs if isinstance(v.type, TensorType)]
    free = sorted({key for value in inputs for key in _free_sizes(value)} - set(base.sizes))
    kinds = [
        "seed",
        *(["size"] * 2 if free else []),
        *(["fill", "fill", "scale"] if inputs else []),
    ]
    kind = kinds[int(rng.integers(len(kinds)))]
    if kind == "seed":
        return replace(recipe, seed=int(rng.integers(1 << 31)))
    if kind == "size":
        some = (numbers.draw(rng), float(rng.integers(1, 9)), 2 ** rng.uniform(0, 11))
        # An empty tensor is no fair input: onnxruntime ends the process in some kernels.
        size = min(max(int(some[int(rng.integers(3))]), 1), _LARGEST_SIZE)
        return replace(recipe, sizes={**recipe.sizes, free[int(rng.integers(len(free)))]: size})
    value = inputs[int(rng.integers(len(inputs)))]
    if value.element is None or value.element.name == "string" or value.name in base.fills:
        return recipe
    if kind == "fill":
        return replace(recipe, fills={**recipe.fills, value.name: numbers.draw(rng)})
    factor = float(rng.choice([-1.0, 0.01, 10.0, 1000.0]))
    fills = {name: x for name, x in recipe.fills.items() if name != value.name}
    return replace(recipe, fills=fills, scales={**recipe.scales, value.name: factor})


def _free_sizes(value: Value) -> list[str]:
    """The keys in `Recipe.sizes` of a value's dimensions that are not numbers."""
    return [
        dim if isinstance(dim, str) else f"{value.name}.{axis}"
        for axis, dim in enumerate(value.shape or ())
        if not isinstance(dim, int)
    ]


# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forced:
    """What came of forcing one branch: `problem` says why it could not run, or how the models
    then differ (`wrong`); it is empty where they agree."""

    branch: Branch
    problem: str = ""
    wrong: bool = False


def settings(sites: Sequence[IfSite], switched: Sequence[int], branch: Branch) -> dict[str, Any]:
    """The switches of `instrument` that lead into `branch` through the Ifs around it."""
    index, wanted = branch
    chosen = {site: OWN for site in switched}
    chosen |= {parent: int(taken) for parent, taken in sites[index].parents}
    chosen[index] = int(wanted)
    return {sites[site].switch: np.array(value, np.int32) for site, value in chosen.items()}


def to_switch(sites: Sequence[IfSite], branches: Sequence[Branch]) -> list[int]:
    """The sites that need a switch to force these branches: their Ifs and those around them."""
    needed = {index for index, _ in branches}
    for index, _ in branches:
        needed |= {parent for parent, _ in sites[index].parents}
    return sorted(needed)


def force(
    sites: Sequence[IfSite],
    branches: Sequence[Branch],
    first: Session,
    others: Sequence[tuple[str, Session]],
    feeds: Sequence[dict[str, Any]],
    differences: Callable[[Session, Results, Results, Results], str],
) -> list[Forced]:
    """Force each of `branches` in models that have switches, with the first of `feeds` with which
    `first` runs it. `differences` says how a session's outputs for an input, which come last,
    differ from those of `first`, "" where they do not.
    """
    switched = to_switch(sites, branches)
    results = []
    for branch in branches:
        site = sites[branch[0]]
        problem, expected, given = "no input to try it with", None, None
        for feed in feeds:
            given = {**feed, **settings(sites, switched, branch)}
            try:
                outputs = first.run(given)
            except EngineError as error:
                problem = f"the model itself fails there: {error}"
                continue
            if bool(outputs[site.taken(branch[1])]):
                expected = outputs
                break
            problem = "the body around it never ran"
        if expected is None or given is None:
            results.append(Forced(branch, problem))
            continue
        wrong = []
        for label, session in others:
            try:
                found = differences(session, given, expected, session.run(given))
            except EngineError as error:
                found = str(error)
            if found:
                wrong.append(f"{label}: {found}")
        results.append(Forced(branch, "; ".join(wrong), bool(wrong)))
    return results
