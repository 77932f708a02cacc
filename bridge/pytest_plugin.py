"""The fixture `assert_round_trip` for pytest, which finds it if Bridge is installed."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def assert_round_trip(tmp_path: Path) -> Any:
    """`bridge.testing.assert_round_trip`; the report of a failure is kept in the test's folder."""
    from bridge.testing import assert_round_trip

    def asserted(source: Any, against: Any = None, **options: Any) -> Any:
        __tracebackhide__ = True
        return assert_round_trip(
            source, against, **{"page": tmp_path / "round_trip.html", **options}
        )

    return asserted
