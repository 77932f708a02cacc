"""A sample of the operators' suite: some programs of some operators, of each format.

`python -m tests.operators` runs all programs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.check.isolation import Worker
from tests.control_flow.apart import alone
from tests.control_flow.suite import Entry
from tests.operators.__main__ import sampled, worst
from tests.operators.by_schema import refusals
from tests.operators.by_schema.judge import ended_by, judge
from tests.operators.by_schema.programs import ROWS

SAMPLE = sampled(2, [f"^{name}$" for name in [*ROWS][::9]], 0, 20)

KEPT = refusals.stored()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


@pytest.mark.parametrize("entry", SAMPLE, ids=lambda entry: entry.name)
def test_it_is_right_or_refused(entry: Entry, worker: Worker) -> None:
    verdicts = ended_by(entry, alone(worker, judge, entry), worker)
    assert worst(verdicts) != "fault", verdicts
    assert set(refusals.of([(entry, verdicts)])[entry.kind]) <= set(KEPT.get(entry.kind, ())), (
        "python -m tests.operators --refusals"
    )
