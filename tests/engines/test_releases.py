"""What `python -m tests.releases` measures in each environment, measured in this one."""

from __future__ import annotations

import os

import pytest

from bridge import quirks
from tests.releases.table import Row, read, table
from tests.releases.worker import compare, record, record_canary, sing
from tests.support.model_files import FOLDER

RIGHT = {"original": "right", "there": "right", "back": "right"}


def test_all_versions_are_right() -> None:
    names = ["if_in_loop.onnxtxt", "sequence_input.onnxtxt", "if_nested.xml"]
    paths = [FOLDER / name for name in names]
    known = {path.name: record(path) for path in paths}
    assert [*compare(paths, known, None)] == [{"model": name, **RIGHT} for name in names]
    for path, (data, expected) in known.items():
        known[path] = data, [*expected[1:], expected[0]]
    for wrong in compare(paths, known, None):
        assert set(wrong) == {"model", *RIGHT}
        assert all(wrong[version].startswith("wrong: input 0") for version in RIGHT)


ENDED = "it ended the process (exit code 1)"


class Ending(list):
    """Ends the process that reads it."""

    def __getitem__(self, index: object) -> object:
        os._exit(1)


def test_what_ends_the_process() -> None:
    """It is that model's outcome alone."""
    paths = [FOLDER / name for name in ("if_bool.onnxtxt", "if_nested.xml")]
    known = {path.name: record(path) for path in paths}
    known["if_bool.onnxtxt"] = known["if_bool.onnxtxt"][0], Ending()
    assert [*compare(paths, known, None)] == [
        {"model": "if_bool.onnxtxt", **dict.fromkeys(RIGHT, ENDED)},
        {"model": "if_nested.xml", **RIGHT},
    ]


OLD = [quirk for quirk in quirks.of_engine(quirks.CPU) if quirk.until]

NEWER_LAYERS = frozenset({"computed_one_hot"})
"""Quirks without which an old release gets a layer of an operator set that it does not read."""


@pytest.mark.parametrize("path", [quirk.name for quirk in OLD])
def test_canaries_of_what_is_mended(path: str) -> None:
    without = "refused" if path in NEWER_LAYERS else "right"
    assert sing(path, *record_canary(path)) == {"quirk": path, "with": "right", "without": without}


def test_table() -> None:
    found = {
        "a.onnxtxt": {"original": "right", "there": "right", "back": "dies"},
        "b.onnxtxt": {"original": "fails: X", "there": "right", "back": "right"},
        "c.xml": {"original": "right", "there": "refused: X"},
    }
    row = Row.of(("2024.0.0", "1.17.3", "1.16.2"), found, [])
    *_, line = table([row])
    counts = "1 of 1 | 0 of 1 | 0 of 1 | 0 of 1"
    assert line == f"| 2024.0.0 | 1.17.3 | 1.16.2 | {counts} | `a`, `c` |"


@pytest.mark.parametrize("quirk", OLD, ids=lambda quirk: quirk.name)
def test_releases_of_old_quirks_are_those_measured(quirk: quirks.Quirk) -> None:
    rows = read()
    seen = [row.openvino.rpartition(".")[0] for row in rows if quirk.name in row.faults]
    assert quirk.releases.partition(",")[0] == f"{seen[0]} to {seen[-1]}"
    assert quirk.until == seen[-1]
    assert seen == [row.openvino.rpartition(".")[0] for row in rows][: len(seen)]
