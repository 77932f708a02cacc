"""A sample of the rows that covers every pair of levels of a family; `python -m tests.attributes`
runs all rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.check.isolation import Worker
from tests.attributes.family import Case
from tests.attributes.judge import NO_PROGRAM, judge, judge_stored_as_f16
from tests.attributes.known import is_right, reason_of
from tests.attributes.suite import sample
from tests.control_flow.apart import alone

SAMPLE = [case for case in sample(True, ("onnx", "ir"), every=40) if reason_of(case) is None]
STORED_AS_F16 = [case for case in sample(True, ("ir",), every=40) if reason_of(case) is None]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_it_is_right_both_ways(case: Case, worker: Worker) -> None:
    verdicts = alone(worker, judge, case)
    verdicts.pop(NO_PROGRAM, None)
    assert not {route: said for route, said in verdicts.items() if not is_right(case, said)}


@pytest.mark.parametrize("case", STORED_AS_F16, ids=lambda case: case.name)
def test_it_is_right_if_constants_are_stored_as_f16(case: Case, worker: Worker) -> None:
    verdicts = alone(worker, judge_stored_as_f16, case)
    verdicts.pop(NO_PROGRAM, None)
    assert not {route: said for route, said in verdicts.items() if not is_right(case, said)}
