"""The JSON that commands print is what the schema in the package says."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError

from tests.support.command_line import bridge

SCHEMA = json.loads(files("bridge.cli").joinpath("schema.json").read_text(encoding="utf-8"))
MODELS = Path(__file__).parents[2] / "roundtrip_models"
IF = MODELS / "if_nested.xml"
CASES = {
    "check": ["check", IF, "--samples", "1"],
    "check of another model": ["check", IF, MODELS / "if_bool.onnxtxt", "--samples", "1"],
    "check for a device": ["check", IF, "--samples", "1", "--device", "NPU"],
    "check for a release": ["check", IF, "--samples", "1", "--openvino", "2024.0"],
    "convert": ["convert", IF, "out.onnx"],
    "inspect": ["inspect", MODELS / "loop_in_if.onnxtxt"],
    "inspect cost": ["inspect", MODELS / "loop_in_if.onnxtxt", "--cost"],
    "inspect sequences": ["inspect", MODELS / "sequence_empty_at_times.onnxtxt"],
    "many": ["check", IF, "--jobs", "1", "--samples", "1"],
    "many conversions": ["convert", IF, "--output-dir", "."],
    "ops": ["ops", "Conv*"],
    "ops --quirks": ["ops", "--quirks"],
}


def valid(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name.split()[0]}", "$defs": SCHEMA["$defs"]})


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", CASES)
def test_json(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = json.loads(bridge(*CASES[name], "--json").out)
    valid(name).validate(data)
    del data[sorted(data.keys() - {"cost", "opset", "domains"})[0]]
    with pytest.raises(ValidationError):
        valid(name).validate(data)
