"""`python -m tests.oldest`: Bridge with the oldest packages that `pyproject.toml` allows.

Makes an environment of exactly them, converts models with it and checks them: a sample of
`roundtrip_models/`, and Silero VAD from the package of its makers. `--keep DIR` keeps the
environment, and uses it again.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

PROJECT = Path(__file__).parents[1]
SILERO = "silero-vad==6.2.3"
MODELS = (
    "if_nested_captures_every_scope.onnxtxt",
    "if_nested.xml",
    "if_branches_differ_in_rank_before_conv.onnxtxt",
    "loop_in_if.onnxtxt",
    "exporter_while_stacks.onnxtxt",
    "exporter_sequence_map.onnxtxt",
    "attention_block.onnxtxt",
)
"""Of `roundtrip_models/`: Ifs in ONNX and IR, Loops, sequences, layers."""


def oldest() -> Iterator[str]:
    """The requirements of a conversion and its check, with the oldest allowed versions."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for one in (*project["dependencies"], *project["optional-dependencies"]["check"]):
        name, version = re.fullmatch(r"([\w-]+)>=([\d.]+)", one).groups()  # type: ignore[union-attr]
        yield f"{name}=={version}"


def calls(folder: Path, silero: Path) -> Iterator[list[str | Path]]:
    """The arguments of Bridge to run."""
    openvino = next(one for one in oldest() if one.startswith("openvino=="))
    here = ["--openvino", openvino.removeprefix("openvino==")]
    yield ["--version"]
    for name in MODELS:
        yield ["check", PROJECT / "roundtrip_models" / name, *here]
    # With large inputs all of `yh` is 0, but OpenVINO 2024.0 gives 1e-13 there.
    lstm = PROJECT / "roundtrip_models" / "lstm.onnxtxt"
    yield ["check", lstm, *here, "--range", "x=-1..1"]
    yield ["convert", silero, folder / "vad.xml", *here, "--check"]
    yield ["convert", folder / "vad.xml", folder / "vad.onnx", "--opset", "20", "--check"]
    fixed = ["--value", "sr=16000", "--input-shape", "input=[1,512],state=[2,1,128]"]
    yield ["convert", silero, folder / "vad16k.onnx", *fixed, "--opset", "20", "--check"]


def main(keep: Annotated[Path | None, typer.Option()] = None) -> None:
    """Makes the environment, and ends with 1 if a call fails in it."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        place = keep or scratch / "environment"
        binaries = place / ("Scripts" if sys.platform == "win32" else "bin")
        pip = [binaries / "pip", "install", "-q"]
        if not binaries.exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            subprocess.run([*pip, *oldest()], check=True)
            subprocess.run([*pip, "--no-deps", PROJECT], check=True)
            subprocess.run([*pip, "--no-deps", SILERO], check=True)
        print(*oldest(), f"Python {sys.version.split()[0]}", flush=True)
        silero = next(place.rglob("silero_vad/data/silero_vad.onnx"))
        failed = 0
        for call in calls(scratch, silero):
            print("$ bridge", *call, flush=True)
            failed += subprocess.run([binaries / "bridge", *call], cwd=scratch).returncode != 0
        sys.exit(f"{failed} calls failed" if failed else 0)


if __name__ == "__main__":
    typer.run(main)
