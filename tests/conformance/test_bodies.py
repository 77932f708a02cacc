"""The standard's node cases inside bodies, against the ledger of cases that differ from outside."""

from __future__ import annotations

import pytest

from tests.support.sample import sample

from . import ledger
from .cases import cases
from .routes import BODY_ROUTES
from .runner import Worker

CHUNKS = 4
PART = 36
"""All cases take six minutes of one core; `python -m tests.conformance --bodies` runs all."""


@pytest.mark.parametrize("route", BODY_ROUTES)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_inside_is_as_outside(worker: Worker, chunk: int, route: str) -> None:
    names = sample(sorted(cases()), PART)[chunk::CHUNKS]
    outcomes = {(name, route): worker.run(name, route) for name in names}
    lines = ledger.disagreements(ledger.read(ledger.BODIES), outcomes)
    assert not lines, (
        "\n"
        + "\n".join(lines)
        + ("\nIf this is as it should be: python -m tests.conformance --bodies --update")
    )


def test_every_line_of_the_ledger_is_a_case() -> None:
    lines = ledger.read(ledger.BODIES)
    assert not [pair for pair in lines if pair[0] not in cases() or pair[1] not in BODY_ROUTES]
