"""The report names a constant index out of range, and no other index."""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import pytest

import bridge

GATHERS = {
    "Gather (x, i)": ("{3, -4}", "{0, 4}", "its index 4 is out of range of 4 elements"),
    "Gather <axis = -1> (x, i)": ("{-5, 4}", "{0, -6}", "its index -6 is out of range of 5"),
    "GatherElements <axis = 1> (x, i)": ("{-5, 4}", "{9, 4}", "its index 9 is out of range of 5"),
}


@pytest.mark.parametrize("node", GATHERS)
@pytest.mark.parametrize("branch", [False, True])
def test_an_index_out_of_range_is_told(node: str, branch: bool, tmp_path: Path) -> None:
    right, wrong, says = GATHERS[node]
    shape = "int64[1,2]" if "Elements" in node else "int64[2]"
    text = f"g (float[4,5] x, bool c) => (float[a,b] y) <{shape} i = %s> {{ "
    if branch:
        text += (
            f"y = If (c) <then_branch = t () => (float[a,b] p) {{ p = {node} }}, "
            "else_branch = e () => (float[a,b] q) { q = Neg (x) }> }"
        )
    else:
        text += f"y = {node} }}"
    for indices in (right, wrong):
        source = f'<ir_version: 8, opset_import: ["": 18]> {text % indices}'
        report = bridge.convert(onnx.parser.parse_model(source), tmp_path / "m.xml")
        told = [note for note in report.notes if says in note]
        assert len(told) == (indices == wrong) == len(report.notes)
