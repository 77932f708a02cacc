"""The two searches that a diagnosis makes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bridge.check.diagnosis.walk import fewest, first_wrong


@pytest.mark.parametrize("at_once", [1, 3, 100])
@pytest.mark.parametrize("wrong", [0, 1, 41, 99, None])
def test_what_stays_wrong_is_found(at_once: int, wrong: int | None) -> None:
    asked = []

    def judge(places: list[int]) -> dict[int, bool]:
        asked.extend(places)
        return {place: wrong is not None and place >= wrong for place in places}

    assert first_wrong(range(100), judge, at_once=at_once) == wrong
    assert len(asked) <= {1: 8, 3: 15, 100: 100}[at_once]


def test_what_cannot_be_judged_is_passed_over() -> None:
    known = {place: place >= 40 for place in range(0, 100, 7)}
    found = first_wrong(range(100), lambda places: {p: known[p] for p in places if p in known})
    assert found == 42


def test_causes_alone_are_asked() -> None:
    """What is wrong need not stay so: the even places do not depend on the odd ones."""
    wrong = {30, 31, 50, 70}
    asked = []

    def judge(places: list[int]) -> dict[int, bool]:
        asked.extend(places)
        return {place: place in wrong for place in places}

    def between(first: int | None, known: object) -> Sequence[int]:
        return [] if first is None else range(first % 2, first, 2)

    assert first_wrong(range(100), judge, between, 5, [70]) == 30
    assert len(asked) == len(set(asked)) < 40


@pytest.mark.parametrize("needed", [{3}, {3, 77}, {0, 50, 99}, set(range(10))])
def test_the_fewest_that_fail(needed: set[int]) -> None:
    assert set(fewest(range(100), lambda some: needed <= {*some})) == needed


def test_nothing_fails() -> None:
    assert not fewest(range(9), lambda some: False)
