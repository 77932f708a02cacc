"""The noise of a model: how its own results change if each float is off by two units in the last
place.

A noisy model runs several times. Ties of decisions, sums that cancel and chains of roundings then
give other results in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

import bridge
from bridge.check.compare import agreeing, are_alike, compare, tolerance
from bridge.check.engines import Session
from bridge.check.engines.adapters import widened
from bridge.check.engines.parts import is_too_large
from bridge.check.exact import HALVES_WIDER, widen
from bridge.check.loading import load_in_floats
from bridge.check.noisy import make_noisy
from bridge.check.outputs import Comparison, Results
from bridge.check.pair import Pair
from bridge.errors import BridgeError
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import size_of_constants

_LOT = 8  # runs; the elements outside the noise are counted after each lot
_LOTS = 8
_FACTOR = 2.0  # how many times as wide as seen the noise may be
_SHARE = 2 / (_LOT * _LOTS + 1)
"""The average share of elements outside the noise, for a value that is drawn like these runs."""

_FARTHER = 1.5  # a whole value may be so many times as far from the mean as the samples are

_LARGEST = 1 << 28  # bytes of constants in a model that is run with noise


def load_noisy(pair: Pair, path: Path, name: str, wide: bool = False) -> Session | None:
    """A file of a pair with noise; None if it is large. If `wide`, 16-bit floats become 32-bit
    floats, which have less noise. Then a model that an engine would compile for long gives None,
    too."""
    before, model = pair.loaded(path), pair.load(path)
    if size_of_constants(model.graph) > _LARGEST:
        return None
    wider = HALVES_WIDER if wide and widen(model, HALVES_WIDER) else {}
    try:
        noisy = clone_model(model)
        make_noisy(noisy, constants=True)
        file = pair.rewritten(path, noisy, name)
        if wide and is_too_large(bridge.load(file)):
            return None
        session = load_in_floats(file)
    except BridgeError:  # An engine may want constants.
        make_noisy(model)
        session = load_in_floats(pair.rewritten(path, model, name))
    return widened(session, wider, before) if wider else session


class Noise:
    """The results of a noisy model for one input. It runs as often as further runs help."""

    def __init__(
        self, session: Session, original: Session, comparison: Comparison, feed: Results
    ) -> None:
        self._session, self._original, self._comparison = session, original, comparison
        self._feed = feed
        self._runs: list[Results] = []

    def explains(self, results: Results, others: Sequence[Session] = ()) -> bool:
        """Whether the results are within the noise. More runs follow while each lot of runs takes
        further elements in. In the third lot the sessions `others` run. Raises EngineError."""
        before = left = self._left(results)
        lots = 0
        while left and (lots < 2 + bool(others) or left < before) and lots < _LOTS:
            for session in others if lots == 2 and others else [self._session] * _LOT:
                found = session.run(self._comparison.renamed(self._feed, session))
                self._runs.append(self._comparison.aligned(self._original, session, found) or {})
            before, left, lots = left, self._left(results), lots + 1
        return not self._count(_is_apart, results)

    def _left(self, results: Results) -> int:
        """The number of elements outside; 0 if a value that is drawn like the runs has as many."""
        return self._count(outside, results) if self._count(_is_far, results) else 0

    def _count(self, how: Callable[..., int], results: Results) -> int:
        allowed = self._comparison.allowed
        return sum(
            how(value, [run[name] for run in self._runs if name in run], *allowed(name))
            for name, value in results.items()
        )


def _is_apart(value: Any, samples: Sequence[Any], rtol: float, atol: float) -> bool:
    """Whether a value is far from the samples, although as many of its elements may be outside as
    of any sample."""
    is_far = _is_far(value, samples, rtol, atol)
    if not is_far or not _are_comparable(value, samples):
        return is_far
    others = ([other for other in samples if other is not one] for one in samples)
    most = max(map(outside, samples, others, repeat(rtol), repeat(atol)))
    return _is_far(value, samples, rtol, atol, _FACTOR * most)


def _is_far(
    value: Any, samples: Sequence[Any], rtol: float, atol: float, most: float = 0.0
) -> bool:
    """Whether a value is far from the samples. It is far if more elements are outside than `most`
    and than chance allows. It is far if an element is farther outside than any two samples are
    apart. It is also far if the whole value is farther from the mean than the samples are."""
    count = outside(value, samples, rtol, atol)
    if not _are_comparable(value, samples):
        return count > 0
    if not value.size:
        return False
    wide, *seen = (one.astype(np.float64) for one in (value, *samples))
    if count > max(most, _SHARE * value.size):
        return True
    with np.errstate(all="ignore"):
        low, high = np.min(seen, axis=0), np.max(seen, axis=0)
        beyond = np.maximum(low - wide, wide - high) > (high - low).max() * (1 + rtol) + atol
        if count and beyond.any():
            return True
        mean = np.mean(seen, axis=0)
        known = np.isfinite(mean) & np.isfinite(wide)
        far, *own, allowed = (
            float(np.sqrt(np.mean(np.square(some[known])))) if known.any() else 0.0
            for some in (wide - mean, *(one - mean for one in seen), atol + rtol * np.abs(mean))
        )
    # A sample is farther from the mean of the other samples than from the mean of all.
    return far > _FARTHER * max(own) * len(seen) / (len(seen) - 1) + allowed


def _are_comparable(value: Any, samples: Sequence[Any]) -> bool:
    return bool(samples) and are_alike(value, *samples) and _is_between(value)


def outside(value: Any, samples: Sequence[Any], rtol: float, atol: float) -> int:
    """The number of elements of a value that the samples do not allow. Floats and integers of 8
    bits may lie between the samples, and a little beyond. All others must equal an element of a
    sample."""
    if isinstance(value, list):
        lists = [one for one in samples if isinstance(one, list) and len(one) == len(value)]
        if not lists:
            return 1
        each = zip(value, *lists, strict=True)
        return sum(outside(one, others, rtol, atol) for one, *others in each)
    if not isinstance(value, np.ndarray):
        return not any(compare(one, value, rtol, atol).ok for one in samples)
    alike = [one for one in samples if isinstance(one, np.ndarray) and one.shape == value.shape]
    alike = [one for one in alike if one.dtype == value.dtype]
    if not alike:
        return max(value.size, 1)
    if value.dtype.kind in "OSUbc":
        return int((~np.any([one == value for one in alike], axis=0)).sum())
    wide = value.astype(np.float64)
    seen = np.stack([one.astype(np.float64) for one in alike])
    rtol = tolerance(value, rtol)
    good = agreeing(seen, wide, rtol, atol).any(axis=0)
    if _is_between(value):
        finite = np.isfinite(seen)
        low = np.where(finite, seen, np.inf).min(axis=0)
        high = np.where(finite, seen, -np.inf).max(axis=0)
        good |= _distance(wide, low, high, rtol, atol) <= 1
    return int((~good).sum())


def _is_between(value: np.ndarray) -> bool:
    """Whether elements may lie between the samples."""
    kind = value.dtype.kind
    return kind not in "iuOSUbc" or (kind in "iu" and value.dtype.itemsize == 1)


def _distance(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, rtol: float, atol: float
) -> np.ndarray:
    """The distance of each element from the middle of two limits; up to 1 is within the noise."""
    with np.errstate(all="ignore"):
        middle = (low + high) / 2
        far = np.abs(value - middle) / (_FACTOR * (high - low) / 2 + atol + rtol * np.abs(middle))
    return np.asarray(far)
