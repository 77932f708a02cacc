"""The noise of a model: how its own results change if each float is off by a unit in the last
place.

Only the original is measured, whatever a version gave. A noisy form of it (`noisy`) runs as often
as further runs help. Ties of decisions, sums that cancel and chains of roundings then give other
results in each run. A result is within the noise if it could be one of these runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridge.check.compare import Results, Tolerances, magnitude
from bridge.check.engines import EngineError, Session
from bridge.errors import BridgeError

_LOT = 8  # runs; the results are judged after each lot
_LOTS = 8
_FURTHER = 12  # lots for all inputs of a check, after the first of each
_BEFORE = 3  # lots that may show whether a noisy form is one of the original at all
_HOPELESS = 30.0  # times as far outside as the runs are, then no further run would help

_WIDER = 1.0  # how many widths of the seen range an element may be off from its middle
_MORE = 2.0  # times as far, or as often, outside as one of the runs itself


@dataclass
class Noise:
    """The noise of the original, input by input. `form` opens its noisy form, and may raise
    BridgeError. There is no noise if that does not run, or not explain what the original gives."""

    form: Callable[[], Session] | None
    tolerances: Tolerances
    _session: Session | None = None
    _samples: dict[int, list[Results | None]] = field(default_factory=dict)
    _left: int = _FURTHER

    def of(
        self,
        case: int,
        feed: Results,
        expected: Results,
        found: Sequence[Results],
        kept: Callable[[Results], Results | None],
    ) -> Mapping[str, float] | None:
        """The `level` of the noise of each output that differs, if all results of one input are
        within it; None if they are not. Each of `found` has the outputs that differ. More runs
        follow while each lot of them brings the results nearer. `kept` gives what counts of a run:
        None if it took other branches or iterations than the original, as that is another
        computation and no rounding."""
        outputs = {name: expected[name] for one in found for name in one}
        before = np.inf
        for lot in range(1, _LOTS + 1):
            samples = self._more(case, feed, outputs, lot, kept)
            if not samples:
                return None
            far = max(self._far(expected, samples, one) for one in found)
            if far <= 1:
                return {
                    name: level([*(one[name] for one in samples), value])
                    for name, value in outputs.items()
                }
            late = lot > 1 and (far > 0.9 * before or not self._left)
            if late or (lot > 1 and far > _HOPELESS):  # A tie may fall alike eight times.
                return None
            before = far
        return None

    def _more(
        self,
        case: int,
        feed: Results,
        outputs: Results,
        lots: int,
        kept: Callable[[Results], Results | None],
    ) -> list[Results]:
        """The results of so many lots of runs for an input; none if there is no noisy form."""
        try:
            if self.form is None:
                return []
            self._session = self._session or self.form()
            for least in range(lots, max(lots, _BEFORE) + 1):
                samples = self._drawn(self._session, case, feed, least, kept)
                if self._far(outputs, samples, outputs, itself=True) <= 1:
                    return samples
            # An engine may take another kernel for a noisy form, which then shows nothing.
        except BridgeError:
            pass
        self._session = self.form = None
        return []

    def _drawn(
        self,
        session: Session,
        case: int,
        feed: Results,
        lots: int,
        kept: Callable[[Results], Results | None],
    ) -> list[Results]:
        samples = self._samples.setdefault(case, [])
        while len(samples) < _LOT * lots:
            self._left -= bool(samples) and self._left > 0
            for one in session.run_each([feed] * _LOT):
                if isinstance(one, EngineError):
                    raise one
                samples.append(kept(one))
        return [one for one in samples if one is not None]

    def _far(
        self, expected: Results, samples: Sequence[Results], found: Results, itself: bool = False
    ) -> float:
        """How far results are outside of the noise; up to 1 is within."""
        return max(
            (
                distance(
                    value,
                    [one[name] for one in samples] + ([] if itself else [expected[name]]),
                    *self.tolerances.of(name, value),
                )
                for name, value in found.items()
            ),
            default=0.0,
        )


def distance(value: Any, samples: Sequence[Any], rtol: float, atol: float) -> float:
    """How far a value lies outside of samples, as a share of what is allowed: up to 1 it could be
    one of them. A pure function of arrays."""
    if isinstance(value, list):
        lists = [one for one in samples if isinstance(one, list) and len(one) == len(value)]
        if len(lists) < 2:
            return np.inf
        return max(
            (distance(v, s, rtol, atol) for v, *s in zip(value, *lists, strict=True)), default=0
        )
    if not isinstance(value, np.ndarray):
        return 0.0 if any(type(one) is type(value) and one == value for one in samples) else np.inf
    alike = [
        one
        for one in samples
        if isinstance(one, np.ndarray) and (one.dtype, one.shape) == (value.dtype, value.shape)
    ]
    if len(alike) < 3:
        return np.inf
    if not value.size:
        return 0.0
    bound = atol * max(map(magnitude, alike))
    return (
        _of_numbers(value, alike, rtol, bound) if _is_between(value) else _of_choices(value, alike)
    )


def level(samples: Sequence[Any]) -> float:
    """How large noise is: the width of the samples' range, as a share of the numbers themselves,
    each in the quadratic mean over all elements. Integers of 8 bits count from their mean. For
    choices, the share of elements in which samples differ. The last sample is the original's."""
    value = samples[-1]
    if isinstance(value, list):
        return max(map(level, zip(*samples, strict=False)), default=0.0)
    if not isinstance(value, np.ndarray) or not value.size:
        return 0.0
    alike = [one for one in samples if isinstance(one, np.ndarray) and one.shape == value.shape]
    if not _is_between(value):
        return float(np.mean(np.any([one != value for one in alike], axis=0)))
    wide = value.astype(np.float64)
    low, high, _, _ = _ends([one.astype(np.float64) for one in alike])
    finite = np.isfinite(wide) & np.isfinite(high - low)
    if not finite.any():
        return 0.0
    size = wide[finite] - (wide[finite].mean() if value.dtype.kind in "iu" else 0.0)
    width, size = (float(np.sqrt(np.mean(np.square(one)))) for one in ((high - low)[finite], size))
    return width / size if size else np.inf if width else 0.0


def _of_choices(value: np.ndarray, samples: Sequence[np.ndarray]) -> float:
    """For integers, booleans and strings: how many elements no sample has, against how many of one
    sample no other has."""
    equal = [one == value for one in samples]
    count = int((~np.any(equal, axis=0)).sum())
    if not count:
        return 0.0
    own = 0
    for place, one in enumerate(samples):
        others = np.any([one == other for at, other in enumerate(samples) if at != place], axis=0)
        own = max(own, int((~others).sum()))
    return count / (_MORE * own) if own else np.inf


def _of_numbers(
    value: np.ndarray, samples: Sequence[np.ndarray], rtol: float, bound: float
) -> float:
    """For floats and integers of 8 bits: how many elements are outside of the range of the samples,
    how far the farthest is, and how far all are in the mean; each against the same of a sample."""
    wide = [one.astype(np.float64) for one in samples]
    low, high, lower, higher = _ends(wide)
    limits = float(np.finfo(np.float64).tiny)

    def of(one: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[float, float, float]:
        with np.errstate(all="ignore"):
            middle = (low + high) / 2
            allowed = _WIDER * (high - low) + bound + rtol * np.abs(middle) + limits
            far = np.abs(one - middle) / allowed
            far = np.where((one == low) | (one == high), np.minimum(far, 0.5), far)
            # NaN and infinities have to be those of a sample.
            far = np.where(np.isnan(far), np.inf, far)
            if not np.isfinite(one).all():
                odd = ~np.isfinite(one)
                seen = np.any([(s == one) | (np.isnan(s) & np.isnan(one)) for s in wide], axis=0)
                far = np.where(odd, np.where(seen, 0.0, np.inf), far)
            mean = float(np.sqrt(np.mean(np.square(far))))
        return float((far > 1).sum()), float(far.max()), mean

    count, farthest, mean = of(value.astype(np.float64), low, high)
    own = [
        of(one, np.where(one == low, lower, low), np.where(one == high, higher, high))
        for one in wide
    ]
    counts, most, means = (max(one[place] for one in own) for place in range(3))
    if np.isinf(farthest):
        return np.inf
    return max(
        count / (_MORE * counts) if counts else np.inf if count else 0.0,
        farthest / max(1.0, _MORE * (most if np.isfinite(most) else 0.0)),
        mean / max(0.5, _MORE * (means if np.isfinite(means) else 0.0)),
    )


def _ends(
    samples: Sequence[np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The lowest and the highest of each element, and the second lowest and highest."""
    low = lower = np.full(samples[0].shape, np.inf)
    high = higher = np.full(samples[0].shape, -np.inf)
    for one in samples:
        finite = np.isfinite(one)
        below, above = np.where(finite, one, np.inf), np.where(finite, one, -np.inf)
        low, lower = np.minimum(low, below), np.minimum(lower, np.maximum(low, below))
        high, higher = np.maximum(high, above), np.maximum(higher, np.minimum(high, above))
    return low, high, lower, higher


def _is_between(value: np.ndarray) -> bool:
    """Whether elements may lie between the samples."""
    kind = value.dtype.kind
    return kind not in "iuOSUbc" or (kind in "iu" and value.dtype.itemsize == 1)
