"""The command line. Commands import what they need when they run, so that `--help` is quick.

Exit codes: 0 for success; 1 when a check finds a difference, and for nothing else; 2 for an error,
be it the call's, the model's, or a defect of Bridge.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from bridge.cli.check import check
from bridge.cli.convert import convert
from bridge.cli.inspect import inspect
from bridge.cli.ops import ops
from bridge.cli.output import report_defect, report_error
from bridge.errors import BridgeError

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
    try:
        app(given, prog_name="bridge")
    except BridgeError as error:
        report_error(error, debug)
    except Exception as error:
        report_defect(error, debug)
    sys.exit(2)
