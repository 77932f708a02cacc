"""The command line. Commands import what they need when they run, so that `--help` is quick.

Exit codes: 0 for success; 1 when a check finds a difference, and for nothing else; 2 for an error,
be it the call's, the model's, an engine's, or a defect of Bridge. Who is stopped ends as shells
have it, with 128 and the signal's number: 129 when the terminal goes, 130 interrupted, 141 when
nobody reads the output, 143 terminated.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from bridge.cli.check import check
from bridge.cli.convert import convert
from bridge.cli.inspect import inspect
from bridge.cli.ops import ops
from bridge.cli.output import report_defect, report_error
from bridge.cli.stopping import end_on_signals, leave
from bridge.errors import BridgeError
from bridge.perils import outlive

app = typer.Typer(
    help="Convert models between ONNX and OpenVINO IR, conditional subgraphs included.",
    epilog="'bridge COMMAND --help' shows the options of a command, with examples.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help: importing what draws boxes would take longer than all else that --help does.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(short_help="Convert a model to the format that the destination's suffix names.")(
    convert
)
app.command(short_help="Show that a model and its conversion compute the same.")(check)
app.command(short_help="Show a model's inputs, outputs, operators and nested graphs.")(inspect)
app.command(short_help="List the operators and how each is converted.")(ops)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"bridge {version('onnx-openvino-bridge')}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line (by default that of the process) and exits with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    _open_streams()
    if arguments is None and hasattr(os, "fork") and ("--check" in given or given[:1] == ["check"]):
        outlive()
    end_on_signals(watch=arguments is None)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names, and the arrows of a report, need not be in the encoding of a file or a terminal.
        sys.stdout.reconfigure(errors="replace")
    try:
        app(given, prog_name="bridge")
    except SystemExit as exit:
        # Typer's own code for a closed pipe is 1.
        if isinstance(exit.__context__, BrokenPipeError):
            sys.exit(141)
        leave(exit.code)
        raise
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
