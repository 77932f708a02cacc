"""When two results are equal: the rule of a check, as pure functions of arrays.

- Integers, booleans and strings are equal if they are the same.
- Floats are equal up to `rtol * |expected| + atol * s`. `s` is the largest finite magnitude of the
  expected output: so neither an output of 1e-6 nor a probability among 300,000 lies below the
  tolerance as a whole.
- NaN equals NaN, an infinity the infinity of its sign.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Results = Mapping[str, Any]
"""The inputs or outputs of a run, by name. A sequence is a list, an absent optional None."""

RTOL, ATOL = 1e-3, 1e-5
"""The default tolerances."""

_BLOCK = 1 << 16  # elements that are compared at a time: their temporary arrays stay in the cache


@dataclass(frozen=True)
class Tolerances:
    """The relative and the absolute tolerance, and those of single outputs. `decided` names the
    outputs for which a user chose the tolerance, with "*" for all others: it decides alone."""

    rtol: float = RTOL
    atol: float = ATOL
    by_output: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    decided: frozenset[str] = frozenset()

    def decides(self, output: str) -> bool:
        """Whether the user chose the tolerance of an output."""
        return not self.decided.isdisjoint((output, "*"))

    def of(self, output: str, expected: Any = None) -> tuple[float, float]:
        """The tolerances of an output. By default, floats coarser than `rtol` get two units in the
        last place."""
        rtol, atol = self.by_output.get(output, (self.rtol, self.atol))
        return (rtol if self.decides(output) else max(rtol, 2 * _epsilon(expected))), atol


@dataclass(frozen=True)
class Difference:
    """How far `actual` is from `expected`.

    `problem` says why the two cannot be compared (type, shape, length); it is empty where numbers
    were compared. `absolute`, `relative` and `ulp` are the largest over all elements; NaN or an
    infinity against another number is infinitely far. `share` is the largest difference as a share
    of the allowed one. `worst` is the index of the element with this share, with both of its
    values. `wrong` counts the elements outside the tolerance. `range` is the largest finite
    magnitude of the expected output.
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
    range: float = 0.0

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        largest = f"abs {self.absolute:.3g}, rel {self.relative:.3g}, {self.ulp:.3g} ulp"
        if self.ok:
            return largest
        place = ", ".join(map(str, self.worst))
        return (
            f"{self.wrong} of {self.size} elements differ ({largest}); "
            f"at [{place}] expected {self.expected}, got {self.actual}"
        )

    @property
    def of_range(self) -> float:
        """The largest difference as a share of the largest magnitude; infinite if that is 0."""
        return self.absolute / self.range if self.range else np.inf

    @property
    def badness(self) -> tuple[bool, bool, int, float]:
        """A key that sorts differences, the worst last."""
        return not self.ok, bool(self.problem), self.wrong, self.share


def compare(expected: Any, actual: Any, rtol: float = RTOL, atol: float = ATOL) -> Difference:
    """Compare two arrays, sequences (lists), maps (dictionaries) or optionals (None)."""
    return _compare(expected, actual, rtol, atol * magnitude(expected))


def differences(
    expected: Results, actual: Results, tolerances: Tolerances
) -> dict[str, Difference]:
    """How each output that both results have compares."""
    return {
        name: compare(value, actual[name], *tolerances.of(name, value))
        for name, value in expected.items()
        if name in actual
    }


def magnitude(value: Any) -> float:
    """The largest finite magnitude of an output of floats; 0 for other types."""
    largest = 0.0
    for array in arrays(value):
        if is_real(array) or array.dtype.kind == "c":
            with np.errstate(all="ignore"):
                sizes = np.abs(array.astype(_wide(array)))
            sizes = sizes[np.isfinite(sizes)]
            largest = max(largest, float(sizes.max())) if sizes.size else largest
    return largest


def arrays(value: Any) -> Iterator[np.ndarray]:
    """The tensors of an output, those of a sequence or a map one by one."""
    if isinstance(value, list):
        for item in value:
            yield from arrays(item)
    elif isinstance(value, dict):
        yield np.array([*value.values()])
    elif value is not None:
        yield np.asarray(value)


def is_real(array: np.ndarray) -> bool:
    """Whether an array has real floating-point numbers, of 16 or 8 bits included."""
    return array.dtype.kind == "f" or (array.dtype.kind == "V" and _epsilon(array) > 0)


def _compare(expected: Any, actual: Any, rtol: float, allowed: float) -> Difference:
    if expected is None or actual is None:
        if expected is None and actual is None:
            return Difference(ok=True)
        absent = "is absent, expected a value" if actual is None else "has a value, expected none"
        return Difference(ok=False, problem=absent)
    if isinstance(expected, dict) and isinstance(actual, dict):
        if expected.keys() != actual.keys():
            problem = f"keys {list(actual)}, expected {list(expected)}"
            return Difference(ok=False, problem=problem)
        wanted, found = (
            np.array([each[key] for key in expected], np.float32) for each in (expected, actual)
        )
        return _compare_arrays(wanted, found, rtol, allowed)
    if isinstance(expected, list) or isinstance(actual, list):
        return _compare_sequences(expected, actual, rtol, allowed)
    expected, actual = np.asarray(expected), np.asarray(actual)
    if _is_text(expected) != _is_text(actual) or (
        not _is_text(expected) and expected.dtype != actual.dtype
    ):
        return Difference(ok=False, problem=f"type {actual.dtype}, expected {expected.dtype}")
    if expected.shape != actual.shape:
        problem = f"shape {list(actual.shape)}, expected {list(expected.shape)}"
        return Difference(ok=False, problem=problem)
    return _compare_arrays(expected, actual, rtol, allowed)


def _compare_sequences(expected: Any, actual: Any, rtol: float, allowed: float) -> Difference:
    if not (isinstance(expected, list) and isinstance(actual, list)):
        found, wanted = (type(value).__name__ for value in (actual, expected))
        return Difference(ok=False, problem=f"a {found}, expected a {wanted}")
    if len(expected) != len(actual):
        return Difference(ok=False, problem=f"length {len(actual)}, expected {len(expected)}")
    parts = [_compare(e, a, rtol, allowed) for e, a in zip(expected, actual, strict=True)]
    for position, part in enumerate(parts):
        if part.problem:
            return Difference(ok=False, problem=f"element {position}: {part.problem}")
    if not parts:
        return Difference(ok=True)
    position, worst = max(enumerate(parts), key=lambda item: item[1].badness)
    return _joined(parts, worst, (position, *worst.worst), max(part.range for part in parts))


def _joined(
    parts: Sequence[Difference], worst: Difference, place: tuple[int, ...], span: float
) -> Difference:
    """Several differences as one, with the `worst` of them and its place."""
    measures = ("absolute", "relative", "ulp", "share")
    most = {name: max(getattr(part, name) for part in parts) for name in measures}
    wrong, size = sum(part.wrong for part in parts), sum(part.size for part in parts)
    return replace(worst, worst=place, range=span, wrong=wrong, size=size, **most)


def unlike(one: Any, other: Any, rtol: float, atol: float) -> np.ndarray:
    """Which elements of two arrays differ; for all else, and for other shapes, whether they do."""
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray) or not one.size:
        return np.asarray(not compare(one, other, rtol, atol).ok)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return np.array(True)
    return np.asarray(_distances(one, other, rtol, atol * magnitude(one))[-1] > 1)


def _compare_arrays(
    expected: np.ndarray, actual: np.ndarray, rtol: float, allowed: float
) -> Difference:
    if expected.size == 0:
        return Difference(ok=True)
    wanted, found = expected.reshape(-1), actual.reshape(-1)
    blocks = (slice(at, at + _BLOCK) for at in range(0, expected.size, _BLOCK))
    parts = [_compare_block(wanted[part], found[part], rtol, allowed) for part in blocks]
    block, worst = max(enumerate(parts), key=lambda item: (item[1].share, item[1].absolute))
    place = np.unravel_index(block * _BLOCK + worst.worst[0], expected.shape)
    return _joined(parts, worst, tuple(map(int, place)), magnitude(expected))


def _compare_block(
    expected: np.ndarray, actual: np.ndarray, rtol: float, allowed: float
) -> Difference:
    absolute, relative, ulp, share = _distances(expected, actual, rtol, allowed)
    # Of elements that are infinitely far off, the one that is off by most.
    place = int(np.argmax(np.where(share == share.max(), absolute, -1.0)))
    wrong = int(np.count_nonzero(share > 1))
    return Difference(
        ok=wrong == 0,
        absolute=float(absolute.max()),
        relative=float(relative.max()),
        ulp=float(ulp.max()),
        share=float(share.max()),
        wrong=wrong,
        size=expected.size,
        worst=(place,),
        expected=expected[place],
        actual=actual[place],
    )


def _distances(
    expected: np.ndarray, actual: np.ndarray, rtol: float, allowed: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """How far each element is off: absolute, relative, in units in the last place, and as a share
    of what is allowed."""
    if _is_text(expected):
        expected, actual = expected.astype(str), actual.astype(str)
    if _is_text(expected) or expected.dtype.kind == "b":
        return (np.where(expected != actual, np.inf, 0.0),) * 4
    wide = _wide(expected)
    with np.errstate(all="ignore"):
        e, a = expected.astype(wide), actual.astype(wide)
        absolute = np.where((e == a) | (np.isnan(e) & np.isnan(a)), 0.0, np.abs(a - e))
        absolute = np.where(np.isnan(absolute), np.inf, absolute)
        size = np.abs(e)
        relative = np.where(absolute == 0, 0.0, np.where(size > 0, absolute / size, np.inf))
        relative = np.where(np.isnan(relative), np.inf, relative)
        is_exact = expected.dtype.kind in "iu" or not _epsilon(expected)
        bound = 0.0 if is_exact else allowed + rtol * np.where(np.isfinite(e), size, 0.0)
        share = np.where(absolute == 0, 0.0, absolute / bound)
        share = np.where(np.isnan(share), np.inf, share)
        ulp = absolute / _spacing(np.where(np.abs(a) > size, actual, expected))
        ulp = np.where(absolute == 0, 0.0, np.where(np.isnan(ulp), np.inf, ulp))
    return absolute, relative, ulp, share


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "OSU"


def _wide(array: np.ndarray) -> Any:
    """The type to subtract numbers in. 64-bit integers do not fit into the 53 bits of a double."""
    if array.dtype.kind == "c":
        return np.complex128
    wide = array.dtype.kind in "iu" and array.dtype.itemsize == 8
    return np.longdouble if wide else np.float64


def _epsilon(value: Any) -> float:
    """The unit in the last place of 1 in the floating-point type of a value; 0 for other types."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.kind in "OSUbiu":
        return 0.0
    import ml_dtypes

    try:
        return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError):  # an integer below eight bits
        return 0.0


def _spacing(values: np.ndarray) -> np.ndarray:
    """The distance from each element to the next representable number of its type."""
    import ml_dtypes

    if values.dtype.kind == "c":
        return np.asarray(np.spacing(np.abs(values)), np.float64)
    if not _epsilon(values):
        return np.ones(values.shape)
    info: Any = ml_dtypes.finfo(values.dtype)  # type: ignore[no-untyped-call]
    sizes = np.maximum(np.abs(values.astype(np.float64)), float(info.smallest_normal))
    return np.asarray(np.exp2(np.floor(np.log2(sizes)) - info.nmant))
