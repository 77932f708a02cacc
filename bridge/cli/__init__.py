"""The command line. Commands import what they need when they run, so that `--help` is quick.

Exit codes: 0 for success; 1 when a check finds a difference, and for nothing else; 2 for an error,
be it the call's, the model's, an engine's, or a defect of Bridge. Who is stopped ends as shells
have it, with 128 and the signal's number: 129 when the terminal goes, 130 interrupted, 141 when
nobody reads the output, 143 terminated.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from bridge.cli.output import echo, report_defect, report_error
from bridge.cli.parser import Parser
from bridge.cli.stopping import end_on_signals, leave
from bridge.errors import BridgeError
from bridge.perils import outlive

COMMANDS = {
    "convert": "Convert a model to the format that the destination's suffix names.",
    "check": "Show that a model and its conversion compute the same.",
    "inspect": "Show a model's inputs, outputs, operators and nested graphs.",
    "ops": "List the operators and how each is converted.",
}
"""Each is a file here, with its USAGE, the `add_arguments` and what it does, `run`, whose docstring
is its help."""


def _run(given: Sequence[str]) -> None:
    """Runs the command that the arguments name."""
    if given and given[0] in COMMANDS:
        command = import_module(f"bridge.cli.{given[0]}")
        parser = Parser(f"bridge {given[0]}", command.USAGE, command.run.__doc__ or "")
        command.add_arguments(parser)
        command.run(**parser.read(given[1:]))
        return
    parser = Parser("bridge", "[OPTION]... COMMAND [ARGUMENT]...", _about())
    parser.add_argument("command", metavar="COMMAND", choices=COMMANDS, help="What to do.")
    parser.add_argument("--version", action="store_true", help="Show the version and exit.")
    if list(given) == ["--version"]:
        from bridge.release import release

        echo(f"bridge {release() or '(not installed)'}")
        return
    if not given:
        echo(parser.format_help())
        sys.exit(2)
    parser.read(given)


def _about() -> str:
    commands = "".join(f"\n  {name:9}{what}" for name, what in COMMANDS.items())
    return (
        "Convert models between ONNX and OpenVINO IR, conditional subgraphs included.\n\n"
        f"Commands:{commands}\n\n"
        "'bridge COMMAND --help' shows the options of a command, with examples."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line (by default that of the process) and exits with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    _open_streams()
    if arguments is None:
        _settle(given)
    end_on_signals(watch=arguments is None)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names, and the arrows of a report, need not be in the encoding of a file or a terminal.
        sys.stdout.reconfigure(errors="replace")
    try:
        _run(given)
        sys.exit(0)
    except SystemExit as exit:
        leave(exit.code)
        raise
    except KeyboardInterrupt:
        leave(130)
        sys.exit(130)
    except BrokenPipeError:
        _drop_output()
        sys.exit(141)
    except BridgeError as error:
        report_error(error, debug)
    except MemoryError as error:
        report_error(BridgeError(f"there is not enough memory: {error}"), debug)
    except OSError as error:
        _drop_output()
        where = error.filename or "the output"
        report_error(BridgeError(f"{where}: {error.strerror or error}"), debug)
    except Exception as error:
        report_defect(error, debug)
    sys.exit(2)


def _settle(given: Sequence[str]) -> None:
    """What is done where the process does nothing but what the arguments say."""
    if "--check" not in given and given[:1] != ["check"]:
        gc.disable()  # What a conversion imports and makes lives until the process ends.
    elif hasattr(os, "fork"):
        outlive()


def _open_streams() -> None:
    """Opens what the process was started without (`2>&-`) on nothing: else the next file that is
    opened would be the standard output or error."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                while True:
                    opened = os.open(os.devnull, os.O_RDWR)
                    if opened >= number:
                        break
                setattr(sys, name, open(opened, mode, closefd=False))  # noqa: SIM115


def _drop_output() -> None:
    """Lets go of what could not be printed: Python would try again when it ends, and fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
