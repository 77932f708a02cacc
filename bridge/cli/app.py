"""The commands and their options, as a Typer app."""

from __future__ import annotations

from typing import Annotated

import typer

from bridge.cli.check import check
from bridge.cli.convert import convert
from bridge.cli.inspect import inspect
from bridge.cli.ops import ops
from bridge.cli.output import echo

app = typer.Typer(
    epilog="'bridge COMMAND --help' shows the options of a command, with examples.",
    rich_markup_mode="rich",
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
        from bridge.release import release

        echo(f"bridge {release() or '(not installed)'}")
        raise typer.Exit()


@app.callback()
def bridge(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Convert models between ONNX and OpenVINO IR, conditional subgraphs included."""
