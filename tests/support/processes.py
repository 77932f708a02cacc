"""Processes that tests stop."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def process(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process whose standard output is text; it ends with the block in any case. It obeys signals
    even if the tests ignore them (after `nohup`, or in the background)."""
    if os.name == "posix":
        options["preexec_fn"] = _heed_signals
    options = {"stdout": subprocess.PIPE, "text": True, **options}
    with subprocess.Popen(command, **options) as started:
        try:
            yield started
        finally:
            started.kill()


def _heed_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
