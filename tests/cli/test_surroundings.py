"""What surrounds a process: modules that lie in the current directory."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT)}

TEXT = '<ir_version: 9, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Neg (x) }'

PLANTED = "open(f'ran-{__name__}', 'w').close(); raise SystemExit(f'{__name__} was planted')"
"""A module that leaves a file where it runs, and ends the process."""

SCRIPT = "from bridge.cli import main; main()"
"""The command `bridge`, as an installation writes it."""


def plant(folder: Path, without: frozenset[str] = frozenset()) -> None:
    """Writes a module of each name that Python or an installed package has."""
    for name in {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize"} - without:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(PLANTED)


def began(folder: Path) -> frozenset[str]:
    """The modules that `python -m` imports before the first line of `bridge/__main__.py`."""
    code = "import bridge, runpy, sys; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    finished = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return frozenset(finished.stdout.split()) | {"__future__"}


COMMANDS = [
    "check m.onnxtxt",
    "check m.onnxtxt --jobs 1 --junit m.junit.xml",
    "convert m.onnxtxt m.xml --check",
    "convert m.onnxtxt --output-dir out --jobs 1",
    "inspect m.onnxtxt",
    "ops Conv",
]


@pytest.mark.parametrize("module", [False, True], ids=["bridge", "python -m bridge"])
def test_nothing_is_imported_from_the_current_directory(module: bool, tmp_path: Path) -> None:
    (script := tmp_path / "bin" / "bridge").parent.mkdir()
    script.write_text(SCRIPT)
    folder = tmp_path / "planted"
    (folder / "out").mkdir(parents=True)
    (folder / "m.onnxtxt").write_text(TEXT)
    plant(folder, began(tmp_path) if module else frozenset())
    start = [sys.executable, *(["-m", "bridge"] if module else [script])]
    said = {}
    for command in COMMANDS[2:4] if module else COMMANDS:
        finished = subprocess.run(
            [*start, *command.split()], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
        )
        said[command] = finished.returncode, finished.stderr if finished.returncode else ""
    assert not list(folder.glob("ran-*")), said
    assert set(said.values()) == {(0, "")}, said
