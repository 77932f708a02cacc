"""Assertions for tests of model exporters: an exported model computes the same after conversion.

    from bridge.testing import assert_round_trip

    def test_export():
        program = torch.onnx.export(model, inputs, dynamo=True)
        assert_round_trip(program)

If pytest is installed with Bridge, `assert_round_trip` is a fixture, too. After a failure it keeps
the report as a page.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.errors import text_of
from bridge.files.atomic_write import whole

if TYPE_CHECKING:
    from bridge.check import CheckReport

_LEFT = (("failing", "unknown", "different"), ("unknown", "different"))
"""The states of an If and of a Loop in which the check has not shown them to be equal."""

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

    `source` may be any source of `bridge.convert`; with `against` those two are compared. `options`
    are the options of `bridge.check.check`. With `every_branch`, the check must have shown that
    each branch of each If is equal, by an input or forced, unless nothing can take it. If the
    assertion fails, the report is written to `page`, as HTML.

    Raises AssertionError with the check's report, and the errors of `bridge.check.check`. A
    UsageError also if no engine is installed.

    >>> assert_round_trip("model.onnx", every_branch=True)
    """
    from bridge.check import check
    from bridge.library.outputs import require_outputs

    if page is not None:
        require_outputs(
            {page: None}, [Path(m) for m in (source, against) if isinstance(m, str | Path)]
        )
    report = check(source, against, **options)
    branches = report.branches
    left = [
        f"{site.where} / {site.role(outcome)}: {branches.state((site.index, outcome)).text}"
        for site in branches.sites
        for outcome in site.outcomes
        if branches.state((site.index, outcome)).state in _LEFT[site.loop]
    ]
    if report.ok and not (every_branch and left):
        return report
    message = report.details()
    if report.ok:
        message = f"{text_of(['branches that were not shown to be equal:', *left])}\n{message}"
    if page is not None:
        with whole(page, notes=[]) as (part,):
            part.write_text(report.as_html(), encoding="utf-8", newline="\n")
        message += f"\n{text_of([f'as a page: {page}'])}"
    raise AssertionError(message)
