"""A model run by OpenVINO in a process of its own, which a fault of the engine may end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

Inputs = Sequence[np.ndarray]


def run_alone(model: Path, runs: Sequence[Inputs]) -> list[np.ndarray]:
    """The outputs of the last of these runs; AssertionError where the process does not get
    there."""
    folder = model.parent
    for number, inputs in enumerate(runs):
        np.savez(folder / f"{number}.npz", *inputs)
    command = [sys.executable, "-m", __name__, str(model), str(len(runs))]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, f"{finished.returncode}: {finished.stderr[-500:]}"
    return _arrays(folder / "outputs.npz")


def _arrays(path: Path) -> list[np.ndarray]:
    with np.load(path) as file:
        return [file[name] for name in file.files]


if __name__ == "__main__":
    from tests.support.running import OpenVino

    path = Path(sys.argv[1])
    engine = OpenVino(path)
    outputs: list[np.ndarray] = []
    for number in range(int(sys.argv[2])):
        outputs = engine.run(_arrays(path.parent / f"{number}.npz"))
    np.savez(path.parent / "outputs.npz", *outputs)
