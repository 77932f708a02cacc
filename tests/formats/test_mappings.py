"""The mapping files are TOML, of which they use what `bridge.toml` reads."""

from __future__ import annotations

import tomllib

import pytest

from bridge.toml import read_toml
from bridge.vocabulary import _directory

FILES = sorted(_directory().glob("*.toml"))

OTHER = """
# A "comment", with a = 1 and a comma,
top = [1, -2.5e3, true]

[[Op.spelled]] # twice
key = "a = b # no \\"comment\\", ]"
lines = [
  { a = "x", b-c = ["y", "z",] },
  { a = "]" },
]
[Op.spelled.inner]
"quoted key" = {}
[[Op.spelled]]
["ir::Op"]
"""


@pytest.mark.parametrize("text", [*(path.read_text() for path in FILES), OTHER, ""])
def test_reads_what_tomllib_reads(text: str) -> None:
    assert read_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize("text", ["a = 1 2", "a = x", "a = 'x'", "[A]\nb = 1\n  c = 2"])
def test_refuses_what_it_does_not_read(text: str) -> None:
    with pytest.raises(ValueError):
        read_toml(text)
