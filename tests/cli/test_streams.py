"""`-`: models from the standard input, and to the standard output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import bridge

MODELS = Path(__file__).parents[2] / "roundtrip_models"
IR = MODELS / "if_nested.xml"
PRUNED = MODELS / "if_branches_differ_in_rank_before_conv.onnxtxt"
ONNX = bridge.to_onnx(IR).SerializeToString()


def run(*arguments: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "bridge", *arguments],
        input=given,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(MODELS.parent)},
        check=False,
    )


def test_to_a_stream(tmp_path: Path) -> None:
    finished = run("convert", IR, "-")
    assert (finished.returncode, finished.stderr) == (0, b"")
    bridge.convert(IR, tmp_path / "same.onnx")
    assert finished.stdout == (tmp_path / "same.onnx").read_bytes()


def test_from_a_stream(tmp_path: Path) -> None:
    finished = run("convert", "-", tmp_path / "model.xml", given=ONNX)
    assert (finished.returncode, finished.stderr) == (0, b"")
    bridge.convert(ONNX, tmp_path / "same.xml")
    assert (tmp_path / "model.xml").read_bytes() == (tmp_path / "same.xml").read_bytes()


def test_from_stream_to_stream() -> None:
    """Notes go to the standard error output."""
    model = bridge.to_onnx(PRUNED).SerializeToString()
    finished = run("convert", "-", "-", "--input-shape", "x=[1..8,?]", given=model)
    assert onnx.load_from_string(finished.stdout).graph.node
    assert b"note: " in finished.stderr and finished.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["inspect", "-"], b"control flow:"), (["check", "-", "--quiet"], b"")],
)
def test_other_commands_read_a_stream(arguments: list[str], says: bytes) -> None:
    finished = run(*arguments, given=ONNX)
    assert finished.returncode == 0 and says in finished.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["convert", IR, "-", "--check"], b"-: is a stream of one file"),
        (["convert", "-", "-"], b"Error: the model: "),
    ],
)
def test_a_stream_that_cannot_be(arguments: list[str | Path], says: bytes) -> None:
    finished = run(*arguments, given=b"no model")
    assert (finished.returncode, finished.stdout) == (2, b"")
    assert says in finished.stderr and finished.stderr.count(b"Error: ") == 1


@pytest.mark.parametrize("reduced", ["part.json"] * 3)
def test_an_early_end_leaves_no_words_of_other_processes(reduced: str) -> None:
    """Engines are imported meanwhile."""
    finished = run("check", IR, "--reduce", reduced)
    assert finished.returncode == 2
    assert finished.stderr.decode().splitlines() == [
        f"Error: {reduced}: is for a part of {IR.name}; let it end in .xml"
    ]
