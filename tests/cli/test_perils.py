"""Processes that outlive the engines they run, and end as they are told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from bridge.perils import MOST

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

WORK = """
import os, signal, sys, time
from bridge.perils import call_of, outlive
outlive()
class Lost(Exception): pass
for number in range(1, 31):
    try:
        with call_of("engine", Lost):
            {peril}
        print(number, "done", flush=True)
    except Lost as lost:
        print(number, lost, flush=True)
sys.exit(7)
"""


def started(peril: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORK.format(peril=peril)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(
    ("peril", "code", "said"),
    [
        ("pass", 7, [f"{n} done" for n in range(1, 31)]),
        (
            "number in (2, 5) and os.kill(os.getpid(), signal.SIGFPE)",
            7,
            ["1 done", "2 engine: it ended the process (SIGFPE)", "3 done", "4 done",
             "5 engine: it ended the process (SIGFPE)", "6 done"],
        ),
        ("number == 3 and sys.exit(5)", 5, ["1 done", "2 done"]),
        ("number == 3 and os.kill(os.getpid(), signal.SIGUSR1)", 128 + signal.SIGUSR1, ["1 done"]),
    ],
    ids=["none", "two", "exit", "told"],
)  # fmt: skip
def test_what_ends_a_process_is_left_out(peril: str, code: int, said: list[str]) -> None:
    process = started(peril)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code
    lines = output.splitlines()
    begun = max(place for place, line in enumerate(lines) if line == "1 done")  # by the last child
    assert lines[begun : begun + len(said)] == said


def test_it_gives_up_when_nothing_works() -> None:
    process = started("os.kill(os.getpid(), signal.SIGSEGV)")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors == "Error: engine ended the process (SIGSEGV)\n"
    assert MOST < 30


@pytest.mark.parametrize(
    ("told", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_who_is_told_to_end_ends_with_the_child(told: signal.Signals, code: int) -> None:
    process = started("print(os.getpid(), flush=True) or time.sleep(60)")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.send_signal(told)
    assert process.wait(10) == code
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the child goes on")
