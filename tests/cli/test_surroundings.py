"""What surrounds a process: modules in the current directory, closed streams, limits, logs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from bridge.cli import heartbeat
from bridge.cli.output import progress

PROJECT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT)}

TEXT = '<ir_version: 9, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Neg (x) }'

PLANTED = "open(f'ran-{__name__}', 'w').close(); raise SystemExit(f'{__name__} was planted')"
"""A module that leaves a file in the current folder, and ends the process."""

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


def shell(command: str, folder: Path, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs a shell line in which `bridge` is Bridge."""
    (folder / "m.onnxtxt").write_text(TEXT)
    (folder / "f.txt").write_text(TEXT)
    (folder / "deep.json").write_text("[" * 100_000)
    start = f'bridge() {{ "{sys.executable}" -m bridge "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", start], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True,
        timeout=seconds,
    )  # fmt: skip


POSIX = pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("bridge check f.txt", "f.txt: is neither .onnx nor .xml"),
        ("bridge check m.onnxtxt f.txt", "f.txt: is neither .onnx nor .xml"),
        ("bridge inspect m.onnxtxt --svg a.svg --coverage deep.json", "cannot be read as a check"),
        pytest.param("ulimit -n 8; bridge check m.onnxtxt", "too many files are open", marks=LINUX),
        *(
            pytest.param(f"ulimit -v {limit}000; bridge {command}", "address space", marks=LINUX)
            for limit, command in [
                (210, "check m.onnxtxt"), (260, "check m.onnxtxt"), (300, "convert m.onnxtxt m.xml")
            ]
        ),
    ],
)  # fmt: skip
@POSIX
def test_bad_surroundings_end_with_one_line(command: str, says: str, tmp_path: Path) -> None:
    finished = shell(command, tmp_path)
    assert finished.returncode == 2, finished.stderr
    assert finished.stderr.startswith("Error: ") and finished.stderr.count("\n") == 1
    assert says in finished.stderr


@POSIX
def test_engines_run_where_the_output_is_closed(tmp_path: Path) -> None:
    """The first file that an engine's process opens must not become its standard output."""
    finished = shell("bridge check m.onnxtxt >&- 2>said", tmp_path)
    assert (finished.returncode, (tmp_path / "said").read_text()) == (0, "")


def test_a_log_says_where_long_work_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(heartbeat, "EVERY", 0.05)
    with progress("checking m.onnx") as tell:
        tell("loading original")
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2 and set(lines) == {"checking m.onnx: loading original (0 s)"}
    with progress("checking m.onnx", quiet=True):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
