"""The action for GitHub and the hook for pre-commit: file names are only names, and exit codes
arrive."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import bridge

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github/actions/check/action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
MODELS = ROOT / "roundtrip_models"
posix = pytest.mark.skipif(os.name != "posix", reason="stands in for a command with a script")


def step() -> str:
    """The script of the action that runs the check."""
    found = re.findall(
        r"    - shell: python\n      run: \|\n((?:        .*\n)+)",
        ACTION.read_text(encoding="utf-8"),
    )
    (script,) = found
    return textwrap.dedent(script)


def command(folder: Path, script: str) -> str:
    """A PATH with `onnx-bridge`, which is a shell script."""
    folder.mkdir(exist_ok=True)
    path = folder / "onnx-bridge"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def run_step(
    folder: Path, models: str, options: str, script: str
) -> subprocess.CompletedProcess[str]:
    given = {"PATH": command(folder / "bin", script), "MODELS": models, "OPTIONS": options,
             "FOLDER": str(folder / "temp"), "PYTHONPATH": str(ROOT),
             "GITHUB_STEP_SUMMARY": str(folder / "step.md")}  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", step()],
        env=given, capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip


@posix
@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        ("models/ b.onnx", "--jobs 2", ["--jobs", "2", "--", "models/", "b.onnx"]),
        ("'my models/a.onnx'\nb.onnx\n", "", ["--", "my models/a.onnx", "b.onnx"]),
        ("m/*.onnx", "--size 'x=1'", ["--size", "x=1", "--", "m/*.onnx"]),
        ("$(touch pwned)", "; touch pwned", [";", "touch", "pwned", "--", "$(touch", "pwned)"]),
        ("--junit=good.onnx a.onnx", "", ["--", "--junit=good.onnx", "a.onnx"]),
    ],
)  # fmt: skip
def test_words_of_the_inputs(models: str, options: str, words: list[str], tmp_path: Path) -> None:
    finished = run_step(tmp_path, models, options, 'printf "%s\\n" "$@"')
    temp = tmp_path / "temp"
    fixed = ["check", "--junit", f"{temp}/bridge.xml", "--cache", f"{temp}/bridge-cache"]
    fixed += ["--report", f"{temp}/bridge-report"]
    assert finished.stdout.splitlines() == fixed + words and finished.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


@posix
@pytest.mark.parametrize("code", [0, 1, 2, 143])
def test_exit_codes_of_the_action(code: int, tmp_path: Path) -> None:
    assert run_step(tmp_path, "a.onnx", "", f"exit {code}").returncode == code


@posix
def test_the_summary_of_the_action(tmp_path: Path) -> None:
    """The summary is about this run alone."""
    report = tmp_path / "temp" / "bridge-report"
    write = f"mkdir -p {report}; echo new > {report}/summary.md; exit 1"
    assert run_step(tmp_path, "a.onnx", "", write).returncode == 1
    assert run_step(tmp_path, "a.onnx", "", "exit 2").returncode == 2
    assert (tmp_path / "step.md").read_text() == "new\n"


JUNIT = """<testsuite>
<testcase name="a,b: 100%.onnx"><failure message="y differs&#10;::stop-commands::x"/></testcase>
<testcase name="good.onnx"/>
<testcase name="c.onnx"><error message="is no model"/></testcase>
</testsuite>"""


@posix
def test_annotations_of_the_action(tmp_path: Path) -> None:
    """A name or a reason cannot end the command, nor begin another one."""
    (tmp_path / "junit.xml").write_text(JUNIT, encoding="utf-8")
    write = f"mkdir -p {tmp_path}/temp; cp {tmp_path}/junit.xml {tmp_path}/temp/bridge.xml; exit 1"
    assert run_step(tmp_path, "a.onnx", "", write).stdout.splitlines() == [
        "::error file=a%2Cb%3A 100%25.onnx,title=Bridge::y differs%0A::stop-commands::x",
        "::error file=c.onnx,title=Bridge::is no model",
    ]
    assert not run_step(tmp_path, "a.onnx", "", "exit 2").stdout


@posix
def test_words_that_are_none(tmp_path: Path) -> None:
    """Exit code 1 means differences alone."""
    finished = run_step(tmp_path, "'a.onnx", "", "exit 0")
    assert finished.returncode == 2 and "No closing quotation" in finished.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def run_hook(repository: Path) -> subprocess.CompletedProcess[str]:
    """Stages all files and runs the hook as pre-commit does: the words of its entry, then the file
    names."""
    text = HOOKS.read_text(encoding="utf-8")
    entry, files = (
        re.findall(rf"^  {key}: (.*)$", text, re.MULTILINE)[0] for key in ("entry", "files")
    )
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)
    staged = subprocess.run(
        ["git", "diff", "--staged", "--name-only", "-z"],
        cwd=repository, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    program, *words = shlex.split(entry)
    assert program == "onnx-bridge"
    names = [name for name in staged if re.search(files, name)]
    if not names:
        return subprocess.CompletedProcess([], 0, "", "")
    finished = subprocess.run(
        [sys.executable, "-m", "bridge", *words, *names],
        cwd=repository, check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
    )  # fmt: skip
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    left = subprocess.run(status, cwd=repository, check=True, capture_output=True, text=True)
    assert all(line.startswith("A  ") for line in left.stdout.splitlines())
    return finished


def test_a_name_that_looks_like_an_option(repository: Path) -> None:
    good = repository / "good.onnx"
    bridge.convert(MODELS / "if_bool.onnxtxt", good)
    before = good.read_bytes()
    shutil.copy(good, repository / "--junit=good.onnx")
    finished = run_hook(repository)
    assert (finished.returncode, good.read_bytes()) == (0, before), finished.stderr
    assert "2 models: 2 equal" in finished.stdout


def test_two_models_of_a_commit_are_not_compared_with_each_other(repository: Path) -> None:
    bridge.convert(MODELS / "if_bool.onnxtxt", repository / "a.onnx")
    bridge.convert(MODELS / "if_nested.xml", repository / "b.onnx")
    finished = run_hook(repository)
    assert finished.returncode == 0 and "2 models: 2 equal" in finished.stdout


def test_an_xml_that_is_no_ir(repository: Path) -> None:
    (repository / "pom.xml").write_text('<?xml version="1.0"?><!-- <net -->\n<project/>')
    finished = run_hook(repository)
    assert (finished.returncode, finished.stderr) == (0, "")
    (repository / "broken.xml").write_text("<net")
    finished = run_hook(repository)
    assert finished.returncode == 2 and "broken.xml: " in finished.stderr


@pytest.mark.parametrize("changed", ["ir", "onnx", "both"])
def test_a_wrong_ir_of_a_commit(repository: Path, changed: str) -> None:
    """The two files of a pair are compared if either is staged. No comment hides the IR."""
    source = MODELS / "if_before_growing_chain.onnxtxt"
    model, ir = repository / "scripted.onnx", repository / "scripted.xml"
    bridge.convert(source, model)
    bridge.convert(source, ir)
    text = ir.read_text(encoding="utf-8")
    assert 'type="Multiply"' in text
    text = text.replace('type="Multiply"', 'type="Add"')
    ir.write_text(text.replace("<net", f"<!-- {' ' * 8000} -->\n<net", 1), encoding="utf-8")
    if changed != "both":
        other = ir if changed == "onnx" else model
        subprocess.run(["git", "add", other.name], cwd=repository, check=True)
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, "commit", "-qm", "one"], cwd=repository, check=True)
    finished = run_hook(repository)
    assert finished.returncode == 1 and "1 model: 1 different" in finished.stdout


def test_what_starts_the_hook() -> None:
    text = HOOKS.read_text(encoding="utf-8")
    (pattern,) = re.findall(r"^  files: (.*)$", text, re.MULTILINE)
    names = ["a.onnx", "b/a.ONNX", "a.xml", "a.onnx.txt", "onnx", "a.bin"]
    assert [name for name in names if re.search(pattern, name)] == names[:3]
