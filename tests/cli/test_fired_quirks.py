"""`bridge inspect --quirks` and `bridge convert --verbose` print which quirks fire, and their
places."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from bridge.cli import main

MODELS = Path(__file__).parents[2] / "roundtrip_models"
SCHEMA = json.loads((Path(main.__globals__["__file__"]).parent / "schema.json").read_text())
STACKS = MODELS / "exporter_while_stacks.onnxtxt"
CLAUSE = "stacks_without_iteration"


def run(*arguments: object, code: int = 0) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert (ended.value.code or 0) == code


def test_a_clause_is_told_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    run("inspect", STACKS, "--quirks")
    name, fault, same, place = capsys.readouterr().out.splitlines()
    assert (name, place) == (CLAUSE, '  at graph / Loop "y"')
    assert fault.startswith("  fault: ") and same.startswith("  same meaning: ")


def test_json_is_by_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    run("inspect", STACKS, "--quirks", "--json")
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, {**SCHEMA, "$ref": "#/$defs/fired_quirks"})
    assert [(each["name"], each["places"]) for each in found["quirks"]] == [
        (CLAUSE, ['graph / Loop "y"'])
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "no quirk fires"), (("--openvino", "2024.0"), "gather_from_the_end")],
)
def test_an_older_release_has_more(
    options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run("inspect", MODELS / "exporter_top_boxes.onnxtxt", "--quirks", *options)
    assert said in capsys.readouterr().out


def test_details_of_a_conversion_name_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f'quirk: {CLAUSE} at graph / Loop "y"'
    run("convert", STACKS, tmp_path / "a.xml", "--verbose")
    assert line in capsys.readouterr().out.splitlines()
    run("convert", STACKS, tmp_path / "a.xml")
    assert line not in capsys.readouterr().out


def test_an_ir_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    run("inspect", MODELS / "if_nested.xml", "--quirks", code=2)
    assert "is an IR" in capsys.readouterr().err
