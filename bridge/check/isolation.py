"""Crash isolation: a process of its own for what may end a process, as some kernels of engines do.

They divide by zero or write where they must not, for some inputs. `Worker` calls functions in a
process that `multiprocessing` spawns. It works on all systems, and where engines have threads.
"""

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

from bridge.errors import BridgeError

_context = multiprocessing.get_context("spawn")


class LostProcessError(BridgeError):
    """The process that was to answer ended, or was ended because it took too long."""


class TooLongError(LostProcessError):
    """The process was ended because it took too long."""


class Worker:
    """Calls functions in another process, one at a time.

    The process starts with the first call, if not before. A new one takes its place after it was
    lost, with all that functions have kept in it. It may start processes itself unless it is a
    `daemon`. Nothing that a `quiet` one prints is seen, its last words included.
    """

    def __init__(self, daemon: bool = True, quiet: bool = False) -> None:
        self._daemon, self._quiet = daemon, quiet
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._owner = 0  # the process that started ours: one that is forked starts another

    @property
    def process(self) -> BaseProcess | None:
        """The process that calls go to, None before it is started and after it is lost."""
        return self._process if self._owner == os.getpid() else None

    def call(
        self, function: Callable[..., Any], *arguments: Any, seconds: float | None = None
    ) -> Any:
        """What `function`, which must be importable, returns; raises what it raises.

        Raises LostProcessError where the process ends, TooLongError where it does not answer within
        `seconds`."""
        if multiprocessing.current_process().daemon:
            return function(*arguments)  # Such a process may start no other.
        with self._lock:
            connection = self._ready()
            try:
                connection.send((function, arguments))
                if not connection.poll(seconds):
                    raise TooLongError(f"it did not end within {seconds:.3g} s")
                is_error, result = connection.recv()
            except (EOFError, OSError):
                raise LostProcessError(f"it ended the process ({self._ending()})") from None
            except BaseException:  # An interrupted call has its answer still to come.
                self._stop()
                raise
        if is_error:
            raise result
        return result

    def start(self) -> None:
        """Starts the process, unless it is there."""
        with self._lock:
            self._ready()

    def close(self) -> None:
        """Ends the process."""
        with self._lock:
            self._stop()

    def _ready(self) -> Connection:
        if self._connection is None or self.process is None:
            self._connection, far = _context.Pipe()
            with _bare_start() as safe_path:
                self._process = _context.Process(
                    target=_serve, args=(far, safe_path, self._quiet), daemon=self._daemon
                )
                self._process.start()
            far.close()
            self._owner = os.getpid()
        return self._connection

    def _ending(self) -> str:
        """How the process ended: the name of a signal, or its exit code."""
        assert self._process is not None
        self._process.join(5)
        code = self._process.exitcode
        self._stop()
        try:
            return f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
        except ValueError:
            return f"signal {-(code or 0)}"

    def _stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self.process is not None:
            self.process.kill()
            self.process.join()
        self._connection = self._process = None


def isolated(function: Callable[..., Any], *arguments: Any, seconds: float | None = None) -> Any:
    """One call in a new process; see `Worker.call`."""
    with closing(Worker()) as worker:
        return worker.call(function, *arguments, seconds=seconds)


_starting = threading.Lock()

_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def _bare_start() -> Iterator[str | None]:
    """Hides from processes that start meanwhile what they would import unasked. Gives the text of
    the variable that is set for that.

    The main module is hidden, because a script would run again. So is the current directory, which
    is first in the path of all that starts with `-c`: spawned processes and their resource tracker.
    """
    with _starting:
        main, before = sys.modules["__main__"], os.environ.get(_SAFE_PATH)
        sys.modules["__main__"] = ModuleType("__main__")
        os.environ[_SAFE_PATH] = "1"
        try:
            yield before
        finally:
            sys.modules["__main__"] = main
            _set_safe_path(before)


def _set_safe_path(text: str | None) -> None:
    """Sets the variable, or removes it for None. A process that has started keeps its path."""
    os.environ.pop(_SAFE_PATH, None)
    if text is not None:
        os.environ[_SAFE_PATH] = text


def _serve(connection: Connection, safe_path: str | None, quiet: bool) -> None:
    """The process: answers calls until the other end of the connection is closed."""
    _set_safe_path(safe_path)  # What functions start is no business of Bridge.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent decides what an interrupt ends.
    if quiet:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)  # What an engine prints must not stand among what the parent prints.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            function, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = False, function(*arguments)
        except Exception as error:
            _explain(error)
            answer = True, error
        connection.send(answer)


def _explain(error: Exception) -> None:
    """Keeps with an unforeseen error where it was raised; tracebacks stay in their process."""
    if not isinstance(error, BridgeError):
        error.add_note("".join(traceback.format_exception(error)))


def _end_with_parent() -> None:
    """Ends the process in the midst of a call where the parent has ended, be it killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
