"""Half of a sample of the suite that covers every pair of levels of different axes: with `--whole`,
all of it.

Every sixteenth program also runs for old releases, and as plain meaning.
`python -m tests.control_flow` runs all programs so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bridge.check.isolation import Worker
from tests.control_flow.any_judge import is_right, judge_any, judge_default
from tests.control_flow.apart import alone
from tests.control_flow.ir_first import entries as ir_entries
from tests.control_flow.judge import Verdicts
from tests.control_flow.selected import is_right as is_selected_right, judge_selected
from tests.control_flow.suite import Entry, entries
from tests.support.sample import thinned

SAMPLE = thinned([*entries(2), *ir_entries(2)], 2)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("entry", "judge"),
    [(entry, judge_default if place % 16 else judge_any) for place, entry in enumerate(SAMPLE)],
    ids=lambda given: given.name if isinstance(given, Entry) else "",
)
def test_it_is_right_both_ways(
    entry: Entry, judge: Callable[[Entry], Verdicts], worker: Worker
) -> None:
    verdicts = alone(worker, judge, entry)
    wrong = {route: said for route, said in verdicts.items() if not is_right(entry, route, said)}
    assert not wrong


@pytest.mark.parametrize("entry", [*entries(2, ["if"])][::9], ids=lambda entry: entry.name)
def test_ifs_become_selections(entry: Entry, worker: Worker) -> None:
    verdicts = alone(worker, judge_selected, entry)
    assert all(is_selected_right(entry, route, said) for route, said in verdicts.items()), verdicts
