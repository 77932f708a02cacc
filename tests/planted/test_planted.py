"""A check finds planted faults, or says in its first line what it did not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.faults import KINDS
from tests.planted.judge import outcome
from tests.planted.pairs import make
from tests.support.sample import spread

FOUND = {
    "constant": ("lstm", "convolutions", "attention"),
    "weight": ("gru_both", "f16", "int8", "classifier"),
    "index": ("sliced", "boxes"),
    "attribute": ("padded", "convolutions"),
    "branch": ("nested_if", "if_in_loop"),
    "late iteration": ("loop_counts", "scan_sum"),
    "port map": ("loop_counts",),
    "last element": ("decoder", "large_softmax"),
    "outputs swapped": ("several", "sliced"),
    "output dropped": ("loop_while", "lstm"),
    "rounding": ("rounded",),
    "range": ("embedding", "clipped"),
    "reduction": ("several",),
    "operation": ("several", "loop_while"),
    "comparison": ("nested_if",),
    "-0": ("sign_of_zero",),
    "NaN": ("nan_mask", "nan_mean"),
    "tiny sign": ("tiny",),
    "rare value": ("embedding",),
    "half a percent": ("loop_while", "several"),
    "row": ("embedding",),
}
"""Kinds of faults, and models with such a fault."""

NAMES = [f"{kind}: {model}" for kind, models in FOUND.items() for model in models]


@pytest.mark.parametrize("name", spread(NAMES, 5, lambda name: "constant" in name))
def test_a_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    kind, _, model = name.partition(": ")
    pair = make(list(KINDS).index(kind), 3, tmp_path / "pair", model)
    assert pair is not None
    found, line = outcome(tmp_path / "pair", quick=False)
    assert found in ("different", "said"), (pair, line)
