"""`bridge inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bridge.cli.options import Debug, Limit, given_limits
from bridge.cli.output import echo


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The model: .onnx, or .xml for IR.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False,
    graph: Annotated[
        bool, typer.Option("--graph", help="Print every node, as Bridge has read the model.")
    ] = False,
    weights: Annotated[
        Path | None,
        typer.Option(metavar="FILE.bin", help="The weights of an IR, under another name."),
    ] = None,
    limit: Limit = None,
    debug: Debug = False,
) -> None:
    """Show inputs, outputs, operators, and the tree of Ifs and Loops with their ports.

    Operators have the names of Bridge's vocabulary, which 'bridge ops' lists.

    \b
    Examples:
      bridge inspect model.onnx
      bridge inspect model.xml --json
      bridge inspect model.xml --graph
    """
    from bridge.limits import read_limits, usually

    with usually(read_limits(given_limits(limit))):
        _show(file, as_json, graph, weights)


def _show(file: Path, as_json: bool, graph: bool, weights: Path | None) -> None:
    import bridge
    from bridge.show.description import describe
    from bridge.show.text import as_text

    model = bridge.load(file, weights)
    if graph:
        from bridge.neutral.printer import show

        echo(show(model.graph))
        return
    description = describe(model, str(file))
    if as_json:
        import json

        typer.echo(json.dumps(description, indent=2))
    else:
        echo(as_text(description))
