"""What the pages show of a command is what it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import SAMPLE, pages, printed

SAMPLES = [
    (page, found["words"], found["out"])
    for page in pages()
    for found in SAMPLE.finditer(page.read_text(encoding="utf-8"))
]


def without_releases(text: str) -> str:
    """The text without the releases of engines."""
    return re.sub(r"\d+\.\d+\.\d+", "1.2.3", text)


@pytest.mark.parametrize(("page", "words", "out"), SAMPLES, ids=[words for _, words, _ in SAMPLES])
def test_a_sample(page: Path, words: str, out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(page.parent)  # which is set back
    assert without_releases(printed(words)) == without_releases(out), "python -m tests.docs"


def test_there_are_samples() -> None:
    assert {page.name for page, _, _ in SAMPLES} >= {"README.md", "checks.md"}
