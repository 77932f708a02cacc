"""Compares what two engines computed: types, shapes, and how far apart the numbers are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Difference:
    """How far `actual` is from `expected`.

    `problem` says why the two cannot be the same at all (type, shape, length); it is empty where
    numbers could be compared. `absolute`, `relative` and `ulp` are the largest over all elements
    (NaN equals NaN, an infinity equals itself; NaN or an infinity against a number is infinitely
    far); `share` is the largest difference measured by what is allowed for its element. `worst` is
    the index of the element that exceeds the tolerance the most, with both of its values. `wrong`
    counts the elements outside the tolerance. `random` says that the numbers are others in each
    run, so that nothing but `problem` counts.
    """

    ok: bool
    problem: str = ""
    absolute: float = 0.0
    relative: float = 0.0
    ulp: float = 0.0
    share: float = 0.0
    wrong: int = 0
    size: int = 0
    worst: tuple[int, ...] = ()
    expected: Any = None
    actual: Any = None
    random: bool = False

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        if self.random:
            return "of the same type and shape"
        largest = f"abs {self.absolute:.3g}, rel {self.relative:.3g}, {self.ulp:.3g} ulp"
        if self.ok:
            return largest
        place = ", ".join(map(str, self.worst))
        return (
            f"{self.wrong} of {self.size} elements differ ({largest}); "
            f"at [{place}] expected {self.expected}, got {self.actual}"
        )


def compare(expected: Any, actual: Any, rtol: float, atol: float) -> Difference:
    """Compare two arrays, sequences (lists) or optionals (None).

    An element is right when |actual - expected| <= atol + rtol * |expected|, as
    `numpy.testing.assert_allclose` has it; integers, booleans and strings obey the same rule or,
    where that makes no sense, must be equal.
    """
    if expected is None or actual is None:
        if expected is None and actual is None:
            return Difference(ok=True)
        absent = "is absent, expected a value" if actual is None else "has a value, expected none"
        return Difference(ok=False, problem=absent)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return _compare_maps(expected, actual, rtol, atol)
    if isinstance(expected, list) or isinstance(actual, list):
        return _compare_sequences(expected, actual, rtol, atol)
    expected, actual = np.asarray(expected), np.asarray(actual)
    if _is_text(expected) != _is_text(actual) or (
        not _is_text(expected) and expected.dtype != actual.dtype
    ):
        return Difference(ok=False, problem=f"type {actual.dtype}, expected {expected.dtype}")
    if expected.shape != actual.shape:
        return Difference(
            ok=False, problem=f"shape {list(actual.shape)}, expected {list(expected.shape)}"
        )
    return _compare_arrays(expected, actual, rtol, atol)


def _compare_maps(
    expected: dict[Any, Any], actual: dict[Any, Any], rtol: float, atol: float
) -> Difference:
    """Maps with the same keys, in whatever order, by their values."""
    if expected.keys() != actual.keys():
        return Difference(ok=False, problem=f"keys {list(actual)}, expected {list(expected)}")
    wanted, found = (
        np.array([each[key] for key in expected], np.float32) for each in (expected, actual)
    )
    return _compare_arrays(wanted, found, rtol, atol)


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "OSU"


def _compare_sequences(expected: Any, actual: Any, rtol: float, atol: float) -> Difference:
    if not (isinstance(expected, list) and isinstance(actual, list)):
        found, wanted = (type(value).__name__ for value in (actual, expected))
        return Difference(ok=False, problem=f"a {found}, expected a {wanted}")
    if len(expected) != len(actual):
        return Difference(ok=False, problem=f"length {len(actual)}, expected {len(expected)}")
    parts = [compare(e, a, rtol, atol) for e, a in zip(expected, actual, strict=True)]
    for position, part in enumerate(parts):
        if part.problem:
            return Difference(ok=False, problem=f"element {position}: {part.problem}")
    if not parts:
        return Difference(ok=True)
    position, worst = max(enumerate(parts), key=lambda item: (item[1].wrong, item[1].absolute))
    return Difference(
        ok=all(part.ok for part in parts),
        absolute=max(part.absolute for part in parts),
        relative=max(part.relative for part in parts),
        ulp=max(part.ulp for part in parts),
        share=max(part.share for part in parts),
        wrong=sum(part.wrong for part in parts),
        size=sum(part.size for part in parts),
        worst=(position, *worst.worst),
        expected=worst.expected,
        actual=worst.actual,
    )


def _compare_arrays(
    expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float
) -> Difference:
    if expected.size == 0:
        return Difference(ok=True)
    if _is_text(expected) or expected.dtype.kind == "b":
        absolute = np.where(_text(expected) == _text(actual), 0.0, np.inf)
        relative = ulp = absolute
        wrong = absolute > 0
        excess = share = absolute
    else:
        wide: Any = np.complex128 if expected.dtype.kind == "c" else np.float64
        if expected.dtype.kind in "iu" and expected.dtype.itemsize == 8:
            wide = np.longdouble  # 64-bit integers do not fit a double's 53 bits
        with np.errstate(all="ignore"):
            e, a = expected.astype(wide), actual.astype(wide)
            absolute = np.where((e == a) | (np.isnan(e) & np.isnan(a)), 0.0, np.abs(a - e))
            absolute = np.where(np.isnan(absolute), np.inf, absolute)
            size = np.abs(e)
            finite = np.isfinite(e)
            relative = np.where(absolute == 0, 0.0, np.where(size > 0, absolute / size, np.inf))
            relative = np.where(np.isnan(relative), np.inf, relative)
            allowed = atol + rtol * np.where(finite, size, 0.0)
            excess = absolute - allowed
            share = np.where(absolute == 0, 0.0, absolute / allowed)
            wrong = ~(excess <= 0)  # NaN too
            larger = np.where(np.abs(a) > size, actual, expected)
            ulp = np.where(absolute == 0, 0.0, absolute / _spacing(larger))
            ulp = np.where(np.isnan(ulp), np.inf, ulp)
    place = np.unravel_index(int(np.argmax(excess)), expected.shape)
    count = int(np.count_nonzero(wrong))
    return Difference(
        ok=count == 0,
        absolute=float(absolute.max()),
        relative=float(relative.max()),
        ulp=float(ulp.max()),
        share=float(share.max()),
        wrong=count,
        size=expected.size,
        worst=tuple(int(index) for index in place),
        expected=expected[place],
        actual=actual[place],
    )


def agreeing(expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Which numbers of two arrays agree; the arrays are broadcast."""
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(a - e) <= atol + rtol * np.abs(e)
    return np.asarray((e == a) | (np.isnan(e) & np.isnan(a)) | near)


def are_alike(*values: Any) -> bool:
    """Whether values are arrays of numbers of one type and shape."""
    first = values[0]
    return all(
        isinstance(one, np.ndarray)
        and (one.dtype, one.shape) == (first.dtype, first.shape)
        and one.dtype.kind not in "OSUbc"
        for one in values
    )


def _text(array: np.ndarray) -> np.ndarray:
    return array.astype(str) if _is_text(array) else array


def _spacing(values: np.ndarray) -> np.ndarray:
    """The distance from each element to the next representable number of its type."""
    import ml_dtypes

    if values.dtype.kind in "iu":
        return np.ones(values.shape)
    if values.dtype.kind == "c":
        return np.asarray(np.spacing(np.abs(values)), np.float64)
    try:
        info: Any = ml_dtypes.finfo(values.dtype)  # type: ignore[no-untyped-call]
    except ValueError:  # an integer below eight bits
        return np.ones(values.shape)
    magnitude = np.maximum(np.abs(values.astype(np.float64)), float(info.smallest_normal))
    return np.asarray(np.exp2(np.floor(np.log2(magnitude)) - info.nmant))


def tolerance(expected: Any, rtol: float) -> float:
    """`rtol`, or two units in the last place where the type of `expected` is coarser than that."""
    import ml_dtypes

    dtype = getattr(expected, "dtype", None)
    if dtype is None:
        return rtol
    try:
        info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        return max(rtol, 2 * float(info.eps))
    except (ValueError, TypeError):
        return rtol
