"""A check finds a layer that was changed in a body, where inputs of some kind alone show it."""

from __future__ import annotations

from pathlib import Path

import pytest

import bridge
from bridge.check import check
from tests.engines.planted import FOLDER, NEVER_SHOWN, ROUNDED, changes, rounded

LEFT_OUT = [line for lines in NEVER_SHOWN.values() for line in lines]


@pytest.mark.parametrize(
    ("model", "change"),
    [
        ("if_opset_23", "Add → Subtract"),  # an epsilon, which small numbers show
        ("if_scalar_values", "Negative → Abs (Negative_3)"),  # of an integer above 0
        ("if_of_open_rank_in_if", "ReduceSum → ReduceMax"),  # of several rows, and two truth values
        ("if_nested_captures_every_scope", "Maximum → Minimum (Maximum_3)"),  # numbers below -10
        ("if_sibling_bodies_share_names", "Sqrt → Exp"),  # cancelled by one of the other branches
    ],
)
def test_a_change_in_a_body_is_found(model: str, change: str, tmp_path: Path) -> None:
    path = FOLDER / f"{model}.onnxtxt"
    bridge.convert(path, tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text(encoding="utf-8")
    found = [one for one in changes(text) if one.layer.startswith(change)]
    (tmp_path / "m.xml").write_text(found[0].text, encoding="utf-8")
    assert check(path, tmp_path / "m.xml").different


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("f16", "Subtract → Add"), ("f16", "Sqrt → Exp"),
        ("int8", "Sigmoid → Tanh"), ("int8", "ReduceSum → ReduceMax"),
        ("qlinear", "Sigmoid → Tanh"),
    ],
)  # fmt: skip
def test_noise_hides_no_change(kind: str, change: str, tmp_path: Path) -> None:
    """Nor is it a difference by itself."""
    path = rounded(kind, tmp_path)
    bridge.convert(path, tmp_path / "m.xml")
    report = check(path, tmp_path / "m.xml")
    assert report.ok
    assert report.as_json()["as_run"] == {"findings": [], "notes": report.as_run}
    text = (tmp_path / "m.xml").read_text(encoding="utf-8")
    found = [one for one in changes(text, True) if one.layer.startswith(change)]
    (tmp_path / "m.xml").write_text(found[0].text, encoding="utf-8")
    assert check(path, tmp_path / "m.xml").different


@pytest.mark.parametrize("model", sorted({line.partition(":")[0] for line in LEFT_OUT}))
def test_a_change_that_is_left_out_can_be_planted(model: str, tmp_path: Path) -> None:
    """A line that names no layer any more would hide another change with that name later."""
    is_rounded = model in ROUNDED
    source = rounded(model, tmp_path) if is_rounded else FOLDER / f"{model}.onnxtxt"
    bridge.convert(source, tmp_path / "m.xml")
    text = (tmp_path / "m.xml").read_text(encoding="utf-8")
    planted = {f"{model}: {change.layer}" for change in changes(text, is_rounded)}
    assert {line for line in LEFT_OUT if line.startswith(f"{model}:")} <= planted
