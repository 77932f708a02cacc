"""The command line, which `bridge.cli.app` declares: how it runs and how it ends.

Commands import modules when they run, so that `--help` is quick.

Exit codes: 0 for success; 1 only when a check finds a difference; 2 for an error of the call, the
model, an engine, or Bridge. A stopped process ends with 128 and the signal's number, as in shells:
129 when the terminal goes, 130 interrupted, 141 when nobody reads the output, 143 terminated.
"""

import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import typer

from bridge.cli.app import COMMANDS, command_line
from bridge.cli.output import echo_json, error_as_json, report_error
from bridge.cli.stopping import end_on_signals, leave
from bridge.cli.surroundings import settle
from bridge.errors import UsageError

_Misuse = cast("type[typer.BadParameter]", typer.BadParameter.__base__)
"""Click's UsageError: Typer's only error for a call that it cannot read."""


def _run(given: Sequence[str]) -> int:
    """Runs the command that the arguments name; returns the exit code."""
    if "" in given:  # which `Path` takes for the current directory
        raise UsageError("an argument is empty; a variable of the shell may have no value")
    command = command_line(given[0] if given and given[0] in COMMANDS else None)
    called = Path(sys.argv[0]).stem
    name = called if called == "onnx-bridge" else "bridge"
    try:
        code = command.main(given or ["--help"], prog_name=name, standalone_mode=False)
    except _Misuse as misuse:
        raise _explained(misuse) from None
    return (code or 0) if given else 2


def _explained(misuse: typer.BadParameter) -> UsageError:
    """The error of a wrong call, with a suggestion and the usage."""
    meant = getattr(misuse, "possibilities", None)
    text = (misuse.message if meant else misuse.format_message()).rstrip(".")
    given = text.rpartition(" ")[2]
    meant = sorted(meant or (), key=lambda name: not name.startswith(given))  # the rest of it
    lines = [f"{text}; did you mean {meant[0]}?" if meant and "mean" not in text else text]
    if misuse.ctx is not None:
        lines += misuse.ctx.get_usage().split("\n")
        lines += [f"'{misuse.ctx.command_path} --help' says more"]
    return UsageError(*lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line (by default the process's own) and exits with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = given[: given.index("--")] if "--" in given else given
    debug, as_json = "--debug" in options, "--json" in options
    _open_streams()
    end_on_signals(watch=arguments is None)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names, and the arrows of a report, need not be in the encoding of a file or a terminal.
        sys.stdout.reconfigure(errors="replace")
    try:
        if arguments is None:
            _settle(given)
        sys.exit(_run(given))
    except SystemExit as exit:
        if isinstance(exit.__context__, BrokenPipeError):
            sys.exit(141)  # which Typer and rich take for an error like others
        leave(exit.code)
        raise
    except KeyboardInterrupt:
        leave(130)
        sys.exit(130)
    except Exception as error:
        report_error(error, debug)
        if as_json:
            with suppress(OSError):
                echo_json(error_as_json(error))
        if isinstance(error, OSError):
            _drop_output()
    sys.exit(2)


def _settle(given: Sequence[str]) -> None:
    """Sets up a process that only runs a command. Raises BridgeError if the setup fails."""
    settle()
    if "--check" not in given and given[:1] != ["check"]:
        gc.disable()  # The modules and objects of a conversion live until the process ends.


def _open_streams() -> None:
    """Opens missing standard streams (`2>&-`) on the null device. Otherwise the next opened file
    would become the standard output or error."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                while True:
                    opened = os.open(os.devnull, os.O_RDWR)
                    if opened >= number:
                        break
                os.set_inheritable(opened, True)  # for the processes of engines
                setattr(sys, name, open(opened, mode, closefd=False))  # noqa: SIM115


def _drop_output() -> None:
    """Drops output that could not be printed: Python would try again at its end, and fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
