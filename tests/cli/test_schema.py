"""Commands print one JSON document that follows the schema in the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import onnx.parser
import pytest
from jsonschema import Draft202012Validator, ValidationError

import bridge as library
from bridge.cli import inspect as inspect_command
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
    "convert --check": ["convert", IF, "out.onnx", "--check", "--quiet"],
    "inspect": ["inspect", MODELS / "loop_in_if.onnxtxt"],
    "inspect cost": ["inspect", MODELS / "loop_in_if.onnxtxt", "--cost"],
    "inspect page": ["inspect", MODELS / "loop_in_if.onnxtxt", "--html", "page.html"],
    "inspect sequences": ["inspect", MODELS / "sequence_empty_at_times.onnxtxt"],
    "many": ["check", IF, "--jobs", "1", "--samples", "1"],
    "many from a hook": ["check", "--hook", "--samples", "1", "--", IF],
    "many conversions": ["convert", IF, "--output-dir", "."],
    "ops": ["ops", "Conv*"],
    "ops --quirks": ["ops", "--quirks"],
}
OPTIONAL = {"cost", "opset", "domains", "check"}


def valid(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name.split()[0]}", "$defs": SCHEMA["$defs"]})


def document(name: str, text: str) -> Any:
    """The one document of `text`, validated with the schema. It has no NaN or infinity."""

    def refuse(number: str) -> None:
        raise AssertionError(number)

    data = json.loads(text, parse_constant=refuse)
    valid(name).validate(data)
    return data


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", CASES)
def test_json(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command, *arguments = CASES[name]
    data = document(name, bridge(command, "--json", *arguments).out)
    data.pop("error", None)  # of a check that did not run all versions
    del data[sorted(data.keys() - OPTIONAL)[0]]
    with pytest.raises(ValidationError):
        valid(name).validate(data)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that commands refuse, each in another way, and a wrong conversion."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "broken.onnx").write_bytes(b"no model")
    head = '<ir_version: 8, opset_import: ["": 17, "x": 1]> g'
    text = f"{head} (float[2] x) => (float[2] y) {{ y = x.Foo(x) }}"
    onnx.save(onnx.parser.parse_model(text), folder / "unknown.onnx")
    (folder / "text.xml").write_text("no XML")
    (folder / "a.onnx").mkdir()
    (folder / "list.json").write_text("[]")
    if_ = MODELS / "if_before_growing_chain.onnxtxt"
    library.convert(if_, folder / "wrong.onnx")
    library.convert(if_, folder / "wrong.xml")
    text = (folder / "wrong.xml").read_text(encoding="utf-8")
    assert 'type="Multiply"' in text
    changed = text.replace('type="Multiply"', 'type="Add"')
    (folder / "wrong.xml").write_text(changed, encoding="utf-8")
    return folder


FAILURES = {
    "check: not a model": ("check broken.onnx", 2, "BridgeError"),
    "check: no such file": ("check no.onnx", 2, "UsageError"),
    "check: a file of another kind": ("check no.txt", 2, "UsageError"),
    "check: unknown operator": ("check unknown.onnx", 2, "BridgeError"),
    "check: an IR that is none": ("check text.xml", 2, "InvalidModelError"),
    "check: no such option": ("check --no-such-option", 2, "UsageError"),
    "check: an option that is no number": ("check --rtol x wrong.onnx", 2, "UsageError"),
    "check: no argument": ("check", 2, "UsageError"),
    "check: an empty argument": ("check ''", 2, "UsageError"),
    "check: different": ("check wrong.onnx wrong.xml --samples 1", 1, None),
    "check: no place for a page": ("check wrong.onnx --report no/r.html", 2, "UsageError"),
    "many: a folder": ("check . --jobs 2 --samples 1", 1, None),
    "many: all fail": ("check broken.onnx unknown.onnx text.xml", 2, None),
    "many: none": ("check no*.onnx", 2, "UsageError"),
    "many: only others": ("check --hook --", 2, "UsageError"),
    "many: no place for a report": ("check --junit no/j.xml broken.onnx", 2, "UsageError"),
    "many: conversions": ("convert . --output-dir {out}", 2, None),
    "many: a file as the folder": ("convert . --output-dir wrong.onnx", 2, "UsageError"),
    "convert: not a model": ("convert broken.onnx {out}/b.xml", 2, "InvalidModelError"),
    "convert: unknown operator": ("convert unknown.onnx {out}/b.xml", 2, "UnsupportedError"),
    "convert: a limit": ("convert wrong.xml {out}/b.onnx --limit elements=1", 2, "LimitError"),
    "convert: no destination": ("convert -", 2, "UsageError"),
    "convert: a folder as a model": ("convert a.onnx {out}/b.xml", 2, "UsageError"),
    "convert: --check of what is cut": (
        "convert wrong.onnx {out}/c.xml --check --outputs y", 2, "UsageError"),
    "inspect: not a model": ("inspect broken.onnx", 2, "InvalidModelError"),
    "inspect: a graph as JSON": ("inspect wrong.onnx --graph", 2, "UsageError"),
    "inspect: a check that is none": (
        "inspect wrong.onnx --html {out}/p.html --coverage list.json", 2, "UsageError"),
    "ops: no such operator": ("ops No", 2, "UsageError"),
    "ops: two lists": ("ops --quirks Conv", 2, "UsageError"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name: str, broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line, code, kind = FAILURES[name]
    monkeypatch.chdir(broken)
    command, *words = line.format(out=tmp_path).split()
    finished = bridge(command, "--json", *(word.strip("'") for word in words))
    data = document(name.partition(":")[0], finished.out)
    assert finished.code == code
    assert data.get("error", {}).get("kind") == kind
    assert kind is None or str(data["error"]["text"]) in finished.err


@pytest.mark.parametrize(("wrong", "code"), [("different", 1), ("incomplete", 2)])
def test_a_conversion_tells_what_its_check_found(
    wrong: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict is in the document of the conversion. The conversion is still written."""
    from bridge import check as checker

    def found(*arguments: object, **options: object) -> object:
        report = real(*arguments, **options)
        if wrong == "incomplete":
            return replace(report, failures=("it would not run",))
        comparisons = [replace(one, state=DIFFERENT) for one in report.verdict.comparisons]
        return replace(report, verdict=replace(report.verdict, comparisons=comparisons))

    from bridge.check.verdict import DIFFERENT

    real = checker.check
    monkeypatch.setattr(checker, "check", found)
    finished = bridge("convert", IF, tmp_path / "out.onnx", "--check", "--json")
    data = document("convert", finished.out)
    assert (finished.code, data["check"]["verdict"]) == (code, wrong)
    assert [Path(file["name"]).name for file in data["files"]] == ["out.onnx"]
    assert ("error" in data) == (code == 2)


def test_a_defect_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(inspect_command, "_print", fail)
    finished = bridge("inspect", IF, "--json")
    data = document("inspect", finished.out)
    assert finished.code == 2 and data["error"]["kind"] == "Defect"
    assert "ZeroDivisionError: unforeseen" in data["error"]["text"]


@pytest.mark.parametrize("good", [True, False])
def test_of_a_stream(good: bool, tmp_path: Path) -> None:
    """The document goes to the standard error output, also for an error."""
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    finished = subprocess.run(
        [sys.executable, "-m", "bridge", "convert", IF if good else tmp_path / "broken.onnx", "-",
         "--json"],
        capture_output=True, env={**os.environ, "PYTHONPATH": str(MODELS.parent)}, check=False,
    )  # fmt: skip
    data = document("convert", finished.stderr.decode())
    assert finished.returncode == (0 if good else 2)
    if good:
        assert onnx.load_from_string(finished.stdout).graph.node
        assert data["files"] == [{"name": "-", "size": len(finished.stdout)}]
    else:
        assert finished.stdout == b"" and data["error"]["kind"] == "InvalidModelError"
