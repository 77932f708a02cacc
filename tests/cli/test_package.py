"""The wheel, installed in an environment of its own without any engine, and the README."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from doctest import DocTestParser
from inspect import Parameter, signature
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

import bridge
from bridge.check import check
from bridge.options import ConvertOptions
from bridge.testing import assert_round_trip
from tests.docs import DOCS, PARTS, README, updated

PROJECT = Path(__file__).parents[2]
MODEL = PROJECT / "roundtrip_models" / "if_nested.xml"

SCRIPT = """
import importlib.util, json, sys
from pathlib import Path
import bridge, onnx
models = Path(bridge.__file__).parent / "roundtrip_models"
absent = [n for n in ("openvino", "onnxruntime", "torch") if importlib.util.find_spec(n) is None]
for source in sorted(models.iterdir()):
    ir, back = f"{source.stem}.xml", f"{source.stem}.onnx"
    bridge.convert(source, ir)
    bridge.convert(ir, back)
    onnx.checker.check_model(back, full_check=True)
    ops = {node.op for node in bridge.load(back).graph.walk()}
    print(json.dumps({"model": source.name, "if": "If" in ops}))
print(json.dumps({"package": bridge.__file__, "absent": absent}))
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"{command}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, PROJECT)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_holds_what_it_needs(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    for path in (PROJECT / "mappings").iterdir():
        assert f"bridge/mappings/{path.name}" in names
    for path in (PROJECT / "bridge").rglob("*.*"):
        assert "__pycache__" in path.parts or str(path.relative_to(PROJECT)) in names
    assert "bridge/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith("tests/") for name in names)


def test_installed_wheel_converts_both_ways(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "environment"
    venv.create(home)
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile", wheel)
    outside = tmp_path / "outside"
    outside.mkdir()

    *converted, last = map(json.loads, run(python, "-I", "-c", SCRIPT, cwd=outside).splitlines())

    assert Path(last["package"]).is_relative_to(home)
    assert last["absent"] == ["openvino", "onnxruntime", "torch"]
    assert len(converted) == 3
    assert all(entry["if"] for entry in converted)

    text = README.read_text(encoding="utf-8")
    first = text.partition("<!-- wheel -->")[2].split("```")[1].partition("\n")[2].strip()
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    finished = subprocess.run(
        first.removesuffix(" --check"), shell=True, cwd=outside, env={"PATH": path}, check=False
    )
    assert finished.returncode == 0 and (outside / "model.xml").is_file()

    command = python.with_name("bridge")
    assert run(command, "--version").startswith("bridge 0.")
    assert "onnx-bridge convert" in run(python.with_name("onnx-bridge"), "convert", "--help")
    said = run(command, "convert", "if_nested.onnx", "again.xml", cwd=outside)
    assert said.startswith("wrote again.xml (")
    assert "control flow:" in run(command, "inspect", "again.xml", cwd=outside)
    failed = subprocess.run(
        [command, "check", "if_nested.onnx"],
        cwd=outside,
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 2
    assert "onnx-openvino-bridge[check]" in failed.stderr


def test_signatures() -> None:
    """Type checkers see every option, and can refuse any argument whose type is not Any."""
    convert = signature(bridge.convert)
    options = {p.name for p in convert.parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert set(ConvertOptions.__annotations__) == options
    save = signature(bridge.save).parameters.values()
    assert {p.name for p in save if p.kind is p.KEYWORD_ONLY} == options
    for call in (bridge.convert, bridge.save, bridge.to_onnx, bridge.to_openvino):
        unpacked = inspect.unwrap(call).__annotations__["options"]
        assert unpacked.startswith("Unpack[") and unpacked.endswith("Options]")
    for call in (bridge.load, bridge.to_onnx, bridge.to_openvino):
        kinds = {p.kind for p in signature(call).parameters.values()}
        assert Parameter.VAR_KEYWORD not in kinds
        assert {p.annotation for p in signature(call).parameters.values()}.isdisjoint({"Any", ""})
    assert {p.name for p in signature(bridge.to_openvino).parameters.values()} <= {
        *convert.parameters
    }
    with pytest.raises(TypeError, match="opst"):
        bridge.to_onnx(MODEL, opst=17)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="convrt"):
        bridge.convrt  # type: ignore[attr-defined]  # noqa: B018


def test_all_that_is_public_is_there_and_documented() -> None:
    assert set(bridge.__all__) == set(bridge._HOMES)
    for name in bridge.__all__:
        assert inspect.getdoc(getattr(bridge, name)), name
    calls = [bridge.load, bridge.convert, bridge.save, bridge.to_onnx, bridge.to_openvino]
    for call in (*calls, bridge.pack, bridge.unpack):
        assert "error" in str(call.__doc__).lower(), call


@pytest.mark.parametrize("page", PARTS)
def test_docs_say_what_the_tables_say(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert updated(page, text) == text, "python -m tests.docs"


def test_one_version() -> None:
    """The package, the newest heading of a release, and the tag that the documents name."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    headings = re.findall(r"^## \[(\d.*?)\]", text_of("CHANGELOG.md"), re.MULTILINE)
    tags = re.findall(r"(?:rev: |check@)(\S+)", text_of("docs/commands.md"))
    assert headings[0] == project["version"] and set(tags) == {f"v{project['version']}"}


def text_of(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")


def test_links_of_the_docs_lead_somewhere() -> None:
    pages = [README, PROJECT / "CONTRIBUTING.md", *DOCS.glob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path, _, heading = link.partition("#")
            if "://" in path:
                continue
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name}: {link}"
            if heading:
                text = target.read_text(encoding="utf-8")
                headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
                known = {
                    re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings
                }
                assert heading in known, f"{page.name}: {link}"


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150
    assert {page.name for page in DOCS.glob("*.md")} <= set(
        re.findall(r"docs/(\w+\.md)", README.read_text(encoding="utf-8"))
    )


def test_readme_has_the_commands() -> None:
    """`.ci/run` runs the second command."""
    text = README.read_text(encoding="utf-8")
    for marker in ("<!-- set-up -->", "<!-- tests -->"):
        assert text.count(marker) == 1
        command = text.partition(marker)[2].split("```")[1].partition("\n")[2].strip()
        assert command and "\n" not in command


EXAMPLES = [bridge.load, bridge.convert, bridge.save, bridge.to_onnx, bridge.to_openvino,
            bridge.pack, bridge.unpack, bridge.Boundary, check, assert_round_trip]  # fmt: skip


@pytest.mark.parametrize("call", EXAMPLES, ids=lambda call: call.__name__)
def test_examples_of_help_run(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    models = PROJECT / "roundtrip_models"
    text = (models / "if_bool.onnxtxt").read_text(encoding="utf-8").replace("[4]", "[n, 4]")
    Path("model.onnxtxt").write_text(text, encoding="utf-8")
    for name in ("model.onnx", "model.xml"):
        bridge.convert("model.onnxtxt", name)
    bridge.convert(models / "sequence_input.onnxtxt", "sequence.xml")
    text = (models / "sequence_handed_through.onnxtxt").read_text(encoding="utf-8")
    Path("y.onnxtxt").write_text(text.replace("same", "y").replace("_y", ""), encoding="utf-8")
    bridge.convert("y.onnxtxt", "gives_sequence.xml")
    examples = DocTestParser().get_examples(str(call.__doc__))
    assert examples
    names: dict[str, Any] = {"assert_round_trip": assert_round_trip, "check": check}
    exec("import bridge, numpy, onnx, openvino", names)
    for example in examples:
        exec(example.source, names)
