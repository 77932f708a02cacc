"""The standard's node cases, in both directions, against the ledger of failures.

The first case of each operator runs, and a 24th of the others. `--whole` runs all, and so does
`python -m tests.conformance`.
"""

from __future__ import annotations

import pytest

from tests.support.sample import spread

from . import ledger
from .cases import cases
from .routes import TESTED
from .runner import Worker

CHUNKS = 40
PART = 24


def operator(name: str) -> str:
    """The operator of a case."""
    return cases()[name].model.graph.node[-1].op_type


@pytest.mark.parametrize("route", TESTED)
@pytest.mark.parametrize("chunk", range(CHUNKS // len(TESTED)))
def test_outcomes_are_what_the_ledger_says(worker: Worker, chunk: int, route: str) -> None:
    names = spread(sorted(cases()), PART, operator)[chunk :: CHUNKS // len(TESTED)]
    outcomes = {(name, route): worker.run(name, route) for name in names}
    lines = ledger.disagreements(ledger.read(), outcomes)
    assert not lines, (
        "\n"
        + "\n".join(lines)
        + ("\nIf this is as it should be: python -m tests.conformance --update")
    )


def test_every_line_of_the_ledger_is_a_case() -> None:
    unknown = [pair for pair in ledger.read() if pair[0] not in cases() or pair[1] not in TESTED]
    assert not unknown
