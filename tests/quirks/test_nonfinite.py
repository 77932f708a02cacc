"""A new enumeration finds the same table of NaN and infinities."""

from __future__ import annotations

import pytest

from tests.quirks.nonfinite import NODES, PROBES, STAYS, STORED, TYPES, wrong


@pytest.mark.parametrize(
    "name", ["Cast to f64", "Max", "Max of a number", "Relu", "Softmax", "Tanh"]
)
@pytest.mark.parametrize("branch", [False, True])
def test_a_sample(name: str, branch: bool) -> None:
    rows = dict.fromkeys(NODES, [""] * len(PROBES))
    for line in STORED.read_text(encoding="utf-8").splitlines():
        operator, type, *cells = line.split("\t")
        assert operator in NODES and type in TYPES
        if type == "f32":
            rows[operator] = cells
    places = ("everywhere", "in a branch" if branch else "at the top")
    expected = {probe for probe, cell in zip(PROBES, rows[name], strict=True) if cell in places}
    assert wrong(name, "f32", branch) == expected


def test_each_operator_has_a_reason() -> None:
    rows = [line.split("\t") for line in STORED.read_text(encoding="utf-8").splitlines()]
    explained = {operator for operators in STAYS for operator in operators}
    assert {operator for operator, type, *_ in rows if type != "f64"} == explained
