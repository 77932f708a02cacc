"""Finds the first value inside two models that differs, by making inner values outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.check.compare import Difference, compare, tolerance
from bridge.check.engines import EngineError, Session

_AT_ONCE = 100  # values exposed in one run, so that memory stays small


@dataclass(frozen=True)
class FirstDifference:
    """The first inner value that differs, the node that makes it, and how many before it in the
    graph agree."""

    name: str
    node: str
    difference: Difference
    before: int

    def __str__(self) -> str:
        return (
            f"the first value that differs is '{self.name}', which {self.node} makes "
            f"({self.difference}); {self.before} before it agree"
        )


Expose = Callable[[Sequence[str]], tuple[Session, Session]]
"""Gives both models, loaded, with the values of these names among their outputs."""


def first_difference(
    values: Mapping[str, str], expose: Expose, feeds: Mapping[str, Any], rtol: float, atol: float
) -> FirstDifference | str:
    """The first of `values` (names with their nodes, in the graph's order) that differs, or why
    none was found."""
    names, agree = list(values), 0
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        try:
            first, second = expose(some)
            # Twice, since what is random, or wrong in a first run only, explains no difference.
            once, expected = first.run(feeds), first.run(feeds)
            _, actual = second.run(feeds), second.run(feeds)
        except EngineError as error:
            return f"the search for the first difference stopped: {error}"
        for name in some:
            if name not in expected or name not in actual:
                continue
            loosened = tolerance(expected[name], rtol)
            if not compare(expected[name], once[name], loosened, atol).ok:
                continue
            difference = compare(expected[name], actual[name], loosened, atol)
            if not difference.ok:
                return FirstDifference(name, values[name], difference, agree)
            agree += 1
    return f"all {agree} inner values that could be compared agree"
