"""Assertions for the tests of who exports models: what is exported computes the same converted.

    from bridge.testing import assert_round_trip

    def test_export():
        program = torch.onnx.export(model, inputs, dynamo=True)
        assert_round_trip(program)

Where pytest is installed with Bridge, `assert_round_trip` is a fixture, too, which keeps the
report of a failure as a page.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.atomic_write import whole
from bridge.errors import text_of

if TYPE_CHECKING:
    from bridge.check import CheckReport

_LEFT = (("failing", "unknown", "different"), ("unknown", "different"))
"""The states in which nothing was shown, of an If and of a Loop."""

AssertRoundTrip = Callable[..., "CheckReport"]


def assert_round_trip(
    source: Any,
    against: Any = None,
    *,
    every_branch: bool = False,
    page: Path | None = None,
    **options: Any,
) -> CheckReport:
    """Asserts that a model and its conversions, there and back, compute the same.

    `source` is all that `bridge.convert` takes; with `against` those two are compared. `options`
    are those of `bridge.check.check`. With `every_branch`, each branch of each If must have been
    shown to be equal, by an input or forced, unless nothing can take it. The report is written to
    `page`, as HTML, where the assertion fails.

    Raises AssertionError with the check's report, and the errors of `bridge.check.check`: a
    UsageError also where no engine is installed.

    >>> assert_round_trip("model.onnx", every_branch=True)
    """
    from bridge.check import check
    from bridge.outputs import require_outputs

    if page is not None:
        require_outputs(
            {page: None}, [Path(m) for m in (source, against) if isinstance(m, str | Path)]
        )
    report = check(source, against, **options)
    left = [
        f"{site.where} / {site.role(outcome)}: {report.state((site.index, outcome)).text}"
        for site in report.sites
        for outcome in site.outcomes
        if report.state((site.index, outcome)).state in _LEFT[site.loop]
    ]
    if report.ok and not (every_branch and left):
        return report
    message = str(report)
    if report.ok:
        message = f"{text_of(['branches that were not shown to be equal:', *left])}\n{message}"
    if page is not None:
        with whole(page, notes=[]) as (part,):
            part.write_text(report.as_html(), encoding="utf-8", newline="\n")
        message += f"\n{text_of([f'as a page: {page}'])}"
    raise AssertionError(message)
