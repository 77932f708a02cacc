"""Crash isolation: what ends the process of an engine ends no check."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from bridge.check import check
from bridge.check.engines import (
    EndlessError,
    EngineError,
    OpenVino,
    Reference,
    Session,
    ValueInfo,
)
from bridge.check.engines.remote import RemoteEngine
from bridge.check.engines.sessions import WORKER, Sessions
from bridge.check.isolation import LostProcessError, Worker, isolated
from bridge.errors import Unsupported, UnsupportedError
from tests.support.processes import process
from tests.support.reports import feeds_of

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture
def worker() -> Iterator[Worker]:
    with closing(Worker()) as made:
        yield made


def ends(how: int) -> None:
    if how > 0:
        os._exit(how)
    os.kill(os.getpid(), -how)


def refuses() -> None:
    raise UnsupportedError("IR", [Unsupported("Foo", "graph", "why")])


def shows(value: object) -> object:
    return value


def test_what_an_engine_prints_is_no_result(worker: Worker, capfd: Any) -> None:
    worker.call(os.write, 1, b"engine")
    assert capfd.readouterr() == ("", "engine")


def test_results_and_errors_come_back(worker: Worker) -> None:
    assert worker.call(os.getpid) == worker.call(os.getpid) != os.getpid()
    values = [np.array([[1, 2]], ml_dtypes.bfloat16), np.array(["a"], object), None, [np.ones(2)]]
    for value in values:
        again = worker.call(shows, value)
        np.testing.assert_array_equal(again, value)
        assert getattr(again, "dtype", None) == getattr(value, "dtype", None)
    with pytest.raises(UnsupportedError) as refused:
        worker.call(refuses)
    assert refused.value.findings[0].operator == "Foo"
    with pytest.raises(ZeroDivisionError) as failed:
        worker.call(divmod, 1, 0)
    assert "in _serve" in failed.value.__notes__[0]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (5, "exit code 5"),
        pytest.param(-signal.SIGSEGV, "SIGSEGV", marks=POSIX),
        pytest.param(-signal.SIGFPE, "SIGFPE", marks=POSIX),
    ],
)
def test_the_end_of_the_process_is_an_error(worker: Worker, how: int, said: str) -> None:
    first = worker.call(os.getpid)
    with pytest.raises(LostProcessError, match=rf"it ended the process \({said}\)"):
        worker.call(ends, how)
    assert worker.call(os.getpid) != first


def test_a_call_has_its_time(worker: Worker) -> None:
    with pytest.raises(LostProcessError, match="it did not end within 1 s"):
        worker.call(time.sleep, 60, seconds=1)
    assert worker.call(shows, 3, seconds=60) == 3


def test_a_call_in_a_process_of_its_own() -> None:
    assert isolated(os.getpid) != isolated(os.getpid)


def in_daemon(found: multiprocessing.SimpleQueue[bool]) -> None:
    found.put(Worker().call(os.getpid) == os.getpid())


def test_a_daemon_which_may_start_no_process_calls_by_itself() -> None:
    context = multiprocessing.get_context("spawn")
    found = context.SimpleQueue()
    process = context.Process(target=in_daemon, args=(found,), daemon=True)
    process.start()
    assert found.get()
    process.join()


SCRIPT = """
import os, sys, time
from bridge.check.isolation import Worker
print("begins", flush=True)
worker = Worker()
print(worker.call(os.getpid), flush=True)
{rest}
"""


def started(path: Path, rest: str) -> AbstractContextManager[subprocess.Popen[str]]:
    path.write_text(SCRIPT.format(rest=rest))
    return process([sys.executable, path])


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """`multiprocessing` would run a script again that does not ask for its `__name__`."""
    with started(tmp_path / "script.py", "print(__name__)") as script:
        begins, _, name = script.communicate(timeout=60)[0].split()
    assert (begins, name, script.returncode) == ("begins", "__main__", 0)


@POSIX
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_the_process_ends_with_the_one_that_started_it(
    told: signal.Signals, tmp_path: Path
) -> None:
    with started(tmp_path / "script.py", "worker.call(time.sleep, 60)") as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "begins\n"
        child = int(script.stdout.readline())
        script.send_signal(told)
        script.wait(10)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the child goes on")


class Fragile:
    """An engine whose models end the process where they are fed this number."""

    name = "fragile"
    version = "1"

    def load(self, source: object) -> Session:
        """See `Engine.load`."""
        return FragileSession(int(Path(str(source)).read_text()))


class FragileSession(Session):
    """See `Fragile`."""

    inputs = outputs = ()
    metadata: Mapping[str, str] = {}

    def __init__(self, deadly: int) -> None:
        self.deadly = deadly

    def run(self, feeds: object) -> dict[str, object]:
        """See `Session.run`."""
        assert isinstance(feeds, dict)
        if feeds["x"] == self.deadly:
            os._exit(1)
        if feeds["x"] < 0:
            raise EngineError("it is negative")
        return {}


def test_sessions_are_loaded_again(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "two").write_text("2")
    (tmp_path / "three").write_text("3")
    engine = RemoteEngine(Fragile, worker)
    two, three = (engine.load(tmp_path / name) for name in ("two", "three"))
    for session, number in ((two, 3), (three, 2), (two, 4)):
        assert session.run({"x": number}) == {}
    with pytest.raises(EngineError, match=r"^fragile: it ended the process \(exit code 1\)$"):
        two.run({"x": 2})
    for session, number in ((three, 2), (two, 3)):
        assert session.run({"x": number}) == {}
    with pytest.raises(EngineError, match="it is negative"):
        three.run({"x": -1})


class Slow(Fragile):
    """An engine that takes its time to load a model."""

    name = "slow"

    def load(self, source: object) -> Session:
        """See `Engine.load`."""
        time.sleep(60)
        return super().load(source)


def test_a_model_is_loaded_in_its_time(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    with pytest.raises(EndlessError, match=r"^slow: it did not end within 0\.2 s"):
        RemoteEngine(Slow, worker, 0.2).load(tmp_path / "one")
    assert RemoteEngine(Fragile, worker).load(tmp_path / "one").run({"x": 2}) == {}


ENDLESS = """<ir_version: 9, opset_import: ["": 18]> g (float x) => (float y) {
  c = IsNaN (x) n = Not (c)
  y = Loop ("", n, x) <body = b (int64 i, bool c0, float v) => (bool d, float w) {
    e = IsNaN (v) d = Not (e) w = Identity (v)
  }>
}"""


def test_a_run_of_the_reference_evaluator_has_its_time(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(ENDLESS), tmp_path / "m.onnx")
    session = Sessions(seconds=0.5).engine(Reference).load(tmp_path / "m.onnx")
    with pytest.raises(EndlessError, match=r"it did not end within"):
        session.run({"x": np.float32(1)})


RECURRENT = """<ir_version: 9, opset_import: ["": 18]> g (float[t, b, 2] x)
=> (float[t, 1, b, 2] y, float[1, b, 2] h) <float[1, {rows}, 2] w = {{ {numbers} }}> {{
  y, h = {op} <hidden_size = 2> (x, w, w)
}}"""


@pytest.mark.parametrize(("op", "rows"), [("LSTM", 8), ("GRU", 6)])
def test_last_words_of_engines_are_not_shown(
    op: str, rows: int, tmp_path: Path, capfd: Any
) -> None:
    """onnxruntime's kernels end the process on a sequence of no step, which is tried."""
    text = RECURRENT.format(op=op, rows=rows, numbers=", ".join(["0.5"] * rows * 2))
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    WORKER.close()  # whose output is what it was when it started
    report = check(tmp_path / "m.onnx")
    assert report.ok, str(report)
    assert capfd.readouterr() == ("", "")


def test_an_input_that_ends_the_engine_of_a_version_alone_is_no_difference(
    tmp_path: Path, capfd: Any
) -> None:
    """What was loaded before is loaded again."""
    size = """<ir_version: 9, opset_import: ["": 18]> g (float[t, b, 2] x) => (int64 y) {{
      {more} y = Size (x)
    }}"""
    more = "w = Constant <value = float[1, 6, 2] {0,1,0,1,0,1,0,1,0,1,0,1}> () "
    more += "z, h = GRU <hidden_size = 2> (x, w, w)"
    onnx.save(onnx.parser.parse_model(size.format(more="")), tmp_path / "m.onnx")
    onnx.save(onnx.parser.parse_model(size.format(more=more)), tmp_path / "other.onnx")
    WORKER.close()  # whose output is what it was when it started
    report = check(tmp_path / "m.onnx", tmp_path / "other.onnx")
    assert report.ok and len(feeds_of(report)) > 4, str(report)
    assert "other.onnx fails with an empty tensor" in report.summary().splitlines()[0]
    assert capfd.readouterr() == ("", "")


def test_an_engine_that_cannot_start_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError(f"{name}.so: failed to map segment from shared object")

    monkeypatch.setattr("importlib.import_module", fail)
    with pytest.raises(EngineError, match=r"^openvino cannot be imported: .*failed to map"):
        OpenVino()


def test_sessions_that_nobody_has_are_let_go(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    for _ in range(3):
        RemoteEngine(Fragile, worker).load(tmp_path / "one")
    assert worker.call(count_sessions) == 1


def count_sessions() -> int:
    from bridge.check.engines import remote

    return len(remote._sessions)


def test_a_check_says_which_engine_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    onnx.save(model, tmp_path / "m.onnx")
    call = WORKER.call

    def deadly(function: object, *arguments: Any, seconds: float | None = None) -> object:
        if getattr(function, "__name__", "") == "_load" and arguments[1][0] is OpenVino:
            return call(ends, 3)
        return call(function, *arguments, seconds=seconds)  # type: ignore[arg-type]

    monkeypatch.setattr(WORKER, "call", deadly)
    report = check(tmp_path / "m.onnx")
    assert not report.ok and not report.different
    assert "ONNX → IR: OpenVINO: it ended the process (exit code 3)" in str(report)


def test_an_input_that_ends_the_process_is_an_error_of_its_own(
    worker: Worker, tmp_path: Path
) -> None:
    (tmp_path / "two").write_text("2")
    session = RemoteEngine(Fragile, worker).load(tmp_path / "two")
    found = session.run_each([{"x": number} for number in (1, 2, -1, 2, 3)])
    said = ["", "it ended the process", "it is negative", "it ended the process", ""]
    assert [isinstance(one, EngineError) for one in found] == [bool(text) for text in said]
    assert all(text in str(one) for text, one in zip(said, found, strict=True))


class Patient(Fragile):
    """An engine that takes as many seconds to run as it is fed."""

    name = "patient"

    def load(self, source: object) -> Session:
        """See `Engine.load`."""
        return PatientSession()


class PatientSession(Session):
    """See `Patient`."""

    inputs = outputs = ()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`."""
        time.sleep(feeds["x"])
        return {}


@pytest.mark.parametrize("first", [0, 60])
def test_an_input_that_never_ends_is_an_error_of_its_own(
    first: int, worker: Worker, tmp_path: Path
) -> None:
    session = RemoteEngine(Patient, worker, 1).load(tmp_path)
    found = session.run_each([{"x": seconds} for seconds in (first, 60, 0)])
    assert [isinstance(one, EndlessError) for one in found] == [bool(first), True, False]


class Counting(Fragile):
    """An engine that counts the runs of a session."""

    name = "counting"

    def load(self, source: object) -> Session:
        """See `Engine.load`."""
        return CountingSession()


class CountingSession(Session):
    """See `Counting`."""

    inputs = ()
    outputs = (ValueInfo("runs"),)
    keeps = True
    runs = 0

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`."""
        self.runs += 1
        return {"runs": self.runs}

    def renew(self) -> None:
        """See `Session.renew`."""
        self.runs = 0


def test_runs_in_order_and_each_as_if_it_were_the_first(worker: Worker, tmp_path: Path) -> None:
    session = RemoteEngine(Counting, worker).load(tmp_path)
    assert session.keeps

    def runs(feeds: list[dict[str, Any]], fresh: bool = False) -> list[int]:
        return [one["runs"] for one in session.run_each(feeds, fresh)]  # type: ignore[call-overload]

    assert runs([{}] * 3) == [1, 2, 3]
    assert runs([{}] * 2, fresh=True) == [1, 1]
    assert runs([{}] * 2) == [2, 3]
    empty = {"x": np.zeros(0)}
    assert runs([empty, empty, {}, {}]) == [4, 5, 1, 2]
    assert runs([empty]) + runs([{}]) == [3, 1]


class Corrupting(Fragile):
    """An engine of which a run without elements ends the process in the next run of any session."""

    name = "corrupting"
    corrupt = False

    def load(self, source: object) -> Session:
        """See `Engine.load`."""
        return CorruptingSession()


class CorruptingSession(Session):
    """See `Corrupting`."""

    inputs = outputs = ()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`."""
        if Corrupting.corrupt or feeds["x"].size == 7:
            os._exit(1)
        Corrupting.corrupt = not feeds["x"].size
        return {}


def test_a_process_that_an_empty_input_has_spoilt_ends_no_later_run(
    worker: Worker, tmp_path: Path
) -> None:
    engine = RemoteEngine(Corrupting, worker)
    first, second = engine.load(tmp_path), engine.load(tmp_path)
    sizes = (0, 2, 0, 0, 7, 2)
    found = first.run_each([{"x": np.zeros(size)} for size in sizes])
    assert [isinstance(one, EngineError) for one in found] == [size == 7 for size in sizes]
    first.run({"x": np.zeros(0)})
    assert second.run({"x": np.zeros(2)}) == {}
