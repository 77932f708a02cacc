"""Searches over things in an order: for the first that is wrong, and for the fewest that fail."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

Judge = Callable[[list[T]], Mapping[T, bool]]
"""Which of these are wrong. Those that cannot be judged are left out."""

Candidates = Callable[[T | None, Mapping[T, bool]], Collection[T]]
"""Where the cause may be, of the first that is known to be wrong so far, if any, and what is known
of the others."""


def first_wrong(
    places: Sequence[T],
    judge: Judge[T],
    between: Candidates[T] | None = None,
    at_once: int = 1,
    ends: Collection[T] = (),
) -> T | None:
    """The first of the places that is wrong, None if none is.

    `judge` is asked of `at_once` places at a time, which are spread evenly; `ends` are among the
    first. The cause is then sought `between` those that are right and the first that is wrong.
    Without `between` what is wrong stays wrong later on, so that it is a search by halves if one is
    asked at once."""
    number = {place: index for index, place in enumerate(places)}
    known, tried, left = dict[T, bool](), set[T](), list(places)
    first: T | None = None
    while left:
        some = _spread(left, at_once, ends)
        tried.update(some)
        known |= judge(some)
        first = min((p for p in known if known[p]), key=lambda p: number[p], default=None)
        if between is None:
            end = len(places) if first is None else number[first]
            right = [number[p] for p in known if not known[p] and number[p] < end]
            causes: Collection[T] = places[max(right, default=-1) + 1 : end]
        else:
            causes = between(first, known)
        left = [place for place in causes if place not in tried]
    return first


def _spread(places: Sequence[T], count: int, wanted: Collection[T]) -> list[T]:
    """So many places, evenly spread, and the wanted ones among them."""
    if len(places) <= count:
        return list(places)
    chosen = [place for place in places if place in wanted][: count // 2]
    more = count - len(chosen)
    spread = {(index + 1) * len(places) // (more + 1) for index in range(more)}
    return [p for index, p in enumerate(places) if index in spread or p in chosen]


def fewest(things: Sequence[T], fail: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """As few of the things as still fail together; none if not even all do.

    This is the delta debugging of A. Zeller and R. Hildebrandt, "Simplifying and Isolating
    Failure-Inducing Input", 2002."""
    if not fail(things):
        return []
    pieces = 2
    while len(things) > 1:
        size = -(-len(things) // pieces)
        some = [things[at : at + size] for at in range(0, len(things), size)]
        others = [[one for one in things if one not in piece] for piece in some]
        found = next((part for part in (*some, *others) if fail(part)), None)
        if found is not None:
            things, pieces = found, 2 if found in some else max(pieces - 1, 2)
        elif size == 1:
            break
        else:
            pieces = min(2 * pieces, len(things))
    return things
