"""The command line, run in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from bridge.cli import main


@dataclass(frozen=True)
class Finished:
    """Exit code and printed text."""

    code: int
    out: str
    err: str


def bridge(*arguments: str | Path) -> Finished:
    """Runs `bridge ARGUMENTS...`; an exception that `main` lets through fails the test."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    return Finished(code, out.getvalue(), err.getvalue())
