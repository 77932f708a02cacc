"""What a fault of an engine may end, in a process of its own."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

Inputs = Sequence[np.ndarray]


def run_alone(model: Path, runs: Sequence[Inputs]) -> list[np.ndarray]:
    """The outputs of the last of these runs of one request, each with tensors that do not outlive
    it; AssertionError where the process does not get there."""
    folder = model.parent
    for number, inputs in enumerate(runs):
        np.savez(folder / f"{number}.npz", *inputs)
    command = [sys.executable, "-m", __name__, str(model), str(len(runs))]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, f"{finished.returncode}: {finished.stderr[-500:]}"
    return _arrays(folder / "outputs.npz")


def apart(run: Callable[..., Any], *arguments: Any, seconds: float = 120) -> Any:
    """What a call returns in a process of its own, which has imported the function's module; a text
    that says so where it does not return. That is no fork of this process, in which an engine may
    have threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([run.__module__])
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(there, run, arguments))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(seconds) else "has no end"
    except EOFError:
        return "dies"
    finally:
        process.kill()
        process.join()


def _tell(connection: Connection, run: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    connection.send(run(*arguments))


def _arrays(path: Path) -> list[np.ndarray]:
    with np.load(path) as file:
        return [file[name] for name in file.files]


if __name__ == "__main__":
    from tests.support.running import OpenVino, run_request

    path = Path(sys.argv[1])
    request = OpenVino(path).compiled.create_infer_request()
    outputs: list[np.ndarray] = []
    for number in range(int(sys.argv[2])):
        outputs = run_request(request, _arrays(path.parent / f"{number}.npz"))
    np.savez(path.parent / "outputs.npz", *outputs)
