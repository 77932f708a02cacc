"""The rule for a verdict, as a table of arrays: no engine runs here."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bridge.check.compare import Tolerances, compare
from bridge.check.engines import EngineError
from bridge.check.noise import distance
from bridge.check.runs import ALONE, IN_ORDER, Run, Runs
from bridge.check.verdict import DIFFERENT, EQUAL, NOISE, RANDOM, conclude

F4, BF16 = np.float32, ml_dtypes.bfloat16


def _array(numbers: Any, dtype: Any = F4) -> np.ndarray:
    return np.array(numbers, dtype)


COMPARED = {
    "floats": (_array([1, 2]), _array([1.0009, 2]), True),
    "floats beyond rtol": (_array([1, 2]), _array([1, 2.003]), False),
    "the tolerance follows the range": (_array([1e6, 0]), _array([1e6, 9]), True),
    "outputs of tiny magnitude": (_array([1e-6, -1e-6]), _array([1e-6, 1e-6]), False),
    "one probability of many": (
        np.full(300_000, 1 / 300_000, F4),
        np.r_[np.zeros(1, F4), np.full(299_999, 1 / 300_000, F4)],
        False,
    ),
    "zeros": (_array([0, 0]), _array([0, 1e-12]), False),
    "NaN where NaN is": (_array([np.nan, 1]), _array([np.nan, 1]), True),
    "NaN for a number": (_array([1]), _array([np.nan]), False),
    "infinities of one sign": (_array([np.inf]), _array([np.inf]), True),
    "infinities of two signs": (_array([np.inf]), _array([-np.inf]), False),
    "an infinity for a large number": (_array([3e38]), _array([np.inf]), False),
    "an infinity widens no tolerance": (_array([np.inf, 1]), _array([np.inf, 1.5]), False),
    "-0.0": (_array([0.0]), _array([-0.0]), True),
    "integers": (_array([20_000], int), _array([20_001], int), False),
    "large integers": (_array([2**62], int), _array([2**62 + 1], int), False),
    "bytes": (_array([200], np.uint8), _array([201], np.uint8), False),
    "integers of four bits": (_array([3], ml_dtypes.int4), _array([4], ml_dtypes.int4), False),
    "booleans": (_array([True, False]), _array([True, True]), False),
    "strings": (_array(["a", "b"], object), _array(["a", "c"], object), False),
    "bf16, two units": (_array([1], BF16), _array([1.0156], BF16), True),
    "bf16, three units": (_array([1], BF16), _array([1.0234], BF16), False),
    "complex": (_array([1 + 1j], complex), _array([1 + 1.1j], complex), False),
    "shapes": (_array([1, 2]), _array([[1, 2]]), False),
    "types": (_array([1]), _array([1], np.float64), False),
    "the last of a sequence": ([_array([1e3]), _array([0])], [_array([1e3]), _array([1])], False),
    "lengths": ([_array([1])], [], False),
    "absent": (None, None, True),
    "present": (None, _array([1]), False),
    "maps": ({"a": 1.0}, {"a": 2.0}, False),
    "empty": (np.zeros((0, 3), F4), np.zeros((0, 3), F4), True),
    "empty, of another shape": (np.zeros((0, 3), F4), np.zeros((3, 0), F4), False),
}


@pytest.mark.parametrize(("expected", "actual", "ok"), COMPARED.values(), ids=COMPARED)
def test_equal(expected: Any, actual: Any, ok: bool) -> None:
    found = compare(expected, actual, *Tolerances().of("y", expected))
    assert found.ok is ok, found


def test_a_tolerance_of_the_user_is_not_widened_for_coarse_types() -> None:
    expected, actual = _array([1], BF16), _array([1.0078], BF16)
    for tolerances, ok in (
        (Tolerances(), True),
        (Tolerances(rtol=1e-3, decided=frozenset({"*"})), False),
        (Tolerances(by_output={"y": (1e-3, 0.0)}, decided=frozenset({"y"})), False),
        (Tolerances(by_output={"z": (1e-9, 0.0)}, decided=frozenset({"z"})), True),
    ):
        assert compare(expected, actual, *tolerances.of("y", expected)).ok is ok, tolerances


def _samples(spread: Any, dtype: Any = F4, count: int = 32) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(10 + rng.uniform(-1, 1, 64) * spread).astype(dtype) for _ in range(count)]


def _shifted(by: Any) -> np.ndarray:
    return (_samples(0.1, count=33)[-1] + by).astype(F4)


_ONE = np.eye(64)[63]  # the last element alone

WITHIN = {
    "one of the runs": (_shifted(0), _samples(0.1), True),
    "all elements a little to one side": (_shifted(0.05), _samples(0.1), True),
    "all elements far to one side": (_shifted(0.4), _samples(0.1), False),
    "one element far off": (_shifted(5 * _ONE), _samples(0.1), False),
    # The noise of one element excuses no other.
    "off where there is no noise": (
        _samples(0.1 * _ONE)[0] + (0.05 * np.eye(64)[0]).astype(F4), _samples(0.1 * _ONE), False,
    ),
    "off where the noise is": (
        _samples(0.1 * _ONE)[0] + (0.05 * _ONE).astype(F4), _samples(0.1 * _ONE), True,
    ),
    "NaN": (np.where(_ONE, np.nan, _shifted(0)).astype(F4), _samples(0.1), False),
    "another shape": (_shifted(0)[:63], _samples(0.1), False),
    "a choice that runs make": (
        _array([1, 2], int), [_array([1, 2 + k % 2], int) for k in range(16)], True,
    ),
    "a choice that no run makes": (
        _array([1, 4], int), [_array([1, 2 + k % 2], int) for k in range(16)], False,
    ),
    "nothing varies": (_array([1, 3], int), [_array([1, 2], int)] * 16, False),
}  # fmt: skip


@pytest.mark.parametrize(("value", "samples", "ok"), WITHIN.values(), ids=WITHIN)
def test_noise(value: Any, samples: list[Any], ok: bool) -> None:
    assert (distance(value, samples, 1e-3, 1e-5) <= 1) is ok


def _runs(*runs: Run, undetermined: list[bool] | None = None) -> Runs:
    masks = {} if undetermined is None else {0: {"y": np.array(undetermined)}}
    return Runs([{"y": _array([1, 2])}, {"y": _array([3, 4])}], runs, masks)


NONE, PART = [True, True], [False, True]
RIGHT, WRONG = {"y": _array([1, 2])}, {"y": _array([1, 9])}

VERDICTS = {
    "equal": (_runs(Run("v", 0, IN_ORDER, RIGHT)), False, EQUAL, True),
    "wrong in order": (_runs(Run("v", 0, IN_ORDER, WRONG)), False, DIFFERENT, False),
    "wrong alone": (
        _runs(Run("v", 0, IN_ORDER, RIGHT), Run("v", 0, ALONE, WRONG)), False, DIFFERENT, False,
    ),
    "within the noise": (_runs(Run("v", 0, IN_ORDER, WRONG)), True, NOISE, True),
    "random": (_runs(Run("v", 0, IN_ORDER, WRONG), undetermined=NONE), False, RANDOM, True),
    "only what is not determined": (
        _runs(Run("v", 0, IN_ORDER, RIGHT), undetermined=PART), False, EQUAL, True,
    ),
    "also what is determined": (
        _runs(Run("v", 0, IN_ORDER, {"y": _array([9, 2])}), undetermined=PART), False, DIFFERENT,
        False,
    ),
    "random, of another shape": (
        _runs(Run("v", 0, IN_ORDER, {"y": _array([1])}), undetermined=NONE), False, DIFFERENT,
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("runs", "noisy", "state", "ok"), VERDICTS.values(), ids=VERDICTS)
def test_verdict(runs: Runs, noisy: bool, state: str, ok: bool) -> None:
    verdict = conclude(runs, Tolerances(), lambda case, results: {"y": 0.01} if noisy else None, {})
    (result,) = verdict.results
    assert (result.state, verdict.different) == (state, not ok)


def test_a_tolerance_of_the_user_decides_alone() -> None:
    runs = _runs(Run("v", 0, IN_ORDER, WRONG))
    tolerances = Tolerances(rtol=1e-9, decided=frozenset({"*"}))
    assert conclude(runs, tolerances, lambda case, results: {"y": 0.0}, {}).different


def test_noise_has_to_explain_each_input() -> None:
    runs = _runs(Run("v", 0, IN_ORDER, WRONG), Run("v", 1, IN_ORDER, {"y": _array([3, 9])}))
    verdict = conclude(runs, Tolerances(), lambda case, results: None if case else {"y": 0.0}, {})
    assert [one.state for one in verdict.comparisons] == [NOISE, DIFFERENT]
    assert verdict.wrong == {1}


def test_a_run_that_fails_is_told() -> None:
    verdict = conclude(_runs(Run("v", 1, ALONE, EngineError("ends"))), Tolerances(), _never, {})
    failed = [(one.label, one.case, str(one.outcome)) for one in verdict.failed]
    assert failed == [("v", 1, "ends")]


def test_outputs_that_the_user_gave_are_compared() -> None:
    verdict = conclude(_runs(), Tolerances(), _never, {1: {"y": _array([3, 5])}})
    assert verdict.different


def _never(case: int, results: Any) -> bool:
    raise AssertionError("nothing differs")


def test_what_was_not_compared_is_told() -> None:
    expected = [
        {"nan": _array([np.nan]), "none": np.zeros((0, 2), F4), "r": _array([1]), "y": _array([1])}
    ]
    runs = Runs(expected, [Run("v", 0, IN_ORDER, expected[0])], {0: {"r": np.array([True])}})
    told = " ".join(conclude(runs, Tolerances(), _never, {}).not_shown)
    for said in ("'nan' is NaN alone", "'none' is without elements", "'r' is random"):
        assert said in told
    assert "'y'" not in told


def test_a_large_output_is_compared_as_a_whole() -> None:
    expected = np.linspace(1, 2, 150_000).reshape(3, 50_000)
    actual = expected.copy()
    actual[2, 7] += 1
    actual[0, 3] += 0.5
    found = compare(expected, actual)
    assert (found.ok, found.wrong, found.size, found.worst) == (False, 2, 150_000, (2, 7))
    assert found.range == 2 and found.absolute == 1 and found.actual == actual[2, 7]
