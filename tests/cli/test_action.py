"""The action for GitHub: what its inputs say reaches the command as the words that they are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ACTION = Path(__file__).parents[2] / ".github/actions/check/action.yml"


@pytest.mark.skipif(os.name != "posix" or not shutil.which("bash"), reason="the step asks for bash")
@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        ("models/ b.onnx", "--jobs 2", ["models/", "b.onnx", "--jobs", "2"]),
        ("'my models/a.onnx'\nb.onnx\n", "", ["my models/a.onnx", "b.onnx"]),
        ("m/*.onnx", "--size 'x=1'", ["m/*.onnx", "--size", "x=1"]),
        ("$(touch pwned)", "; touch pwned", ["$(touch", "pwned)", ";", "touch", "pwned"]),
    ],
)  # fmt: skip
def test_words_of_the_inputs(models: str, options: str, words: list[str], tmp_path: Path) -> None:
    (step,) = re.findall(r"- run: (.*onnx-bridge check.*)", ACTION.read_text(encoding="utf-8"))
    command = tmp_path / "onnx-bridge"
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    given = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "MODELS": models, "OPTIONS": options}
    finished = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step],
        env=given, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    fixed = ["check", "--junit", "bridge.xml", "--cache", ".bridge-cache"]
    assert finished.stdout.splitlines() == fixed + words
    assert not (tmp_path / "pwned").exists()
