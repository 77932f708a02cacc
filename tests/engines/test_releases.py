"""What `python -m tests.releases` measures in each environment, measured in this one."""

from __future__ import annotations

import pytest

from tests.releases.__main__ import Row, table
from tests.releases.worker import compare, record
from tests.support.model_files import FOLDER


@pytest.mark.parametrize("name", ["if_in_loop.onnxtxt", "sequence_input.onnxtxt", "if_nested.xml"])
def test_all_versions_are_right(name: str) -> None:
    path = FOLDER / name
    data, expected = record(path)
    assert compare(path, data, expected) == {"original": "right", "there": "right", "back": "right"}
    wrong = compare(path, data, [*expected[1:], expected[0]])
    assert set(wrong) == {"original", "there", "back"}
    assert all(outcome.startswith("wrong: input 0") for outcome in wrong.values())


def test_table() -> None:
    found = {
        "a.onnxtxt": {"original": "right", "there": "right", "back": "dies"},
        "b.onnxtxt": {"original": "fails: X", "there": "right", "back": "right"},
        "c.xml": {"original": "right", "there": "refused: X"},
    }
    *_, line = table([Row("2024.0.0", "1.17.3", "1.16.2", found)])
    assert line == "| 2024.0.0 | 1.17.3 | 1.16.2 | 1 of 1 | 0 of 1 | 0 of 1 | 0 of 1 |"
