"""`bridge ops`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bridge.cli.options import AsJson
from bridge.cli.output import document, echo, echo_json, table
from bridge.errors import UsageError

if TYPE_CHECKING:
    from bridge.show.coverage import Line


def ops(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Only these, by their names in ONNX or IR; * is anything.",
        ),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Only operators without a conversion both ways.")
    ] = False,
    quirks: Annotated[
        bool,
        typer.Option("--quirks", help="The faults of engines that conversions work round instead."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the operators, their versions in both formats, and how each is converted.

    In the last two columns (an operator that does not fit is refused, with the reason):
      row      a row of mappings/ spells it
      rule     a rule in bridge/operators/ rewrites it
      body     the ONNX standard's own function body takes its place
      passes   it is code of its own: control flow, sequences, maps, strings
      -        it cannot be converted in this direction
      (blank)  the format to convert from has no such operator

    Examples:
      bridge ops
      bridge ops Conv 'Reduce*'
      bridge ops --missing
      bridge ops --quirks
      bridge ops --json
    """
    if quirks:
        if names or missing:
            raise UsageError("--quirks lists all of them: give no operator, and no --missing")
        _quirks(as_json)
        return
    from dataclasses import asdict
    from itertools import groupby

    from bridge.show.coverage import coverage

    found = [
        line
        for line in coverage()
        if (not names or any(_is_called(line.name, name) for name in names))
        and (not missing or "-" in (line.to_ir, line.to_onnx))
    ]
    if not found and names:
        raise UsageError(f"no operator is called {', '.join(names)}; 'bridge ops' lists all")
    if as_json:
        echo_json(document(operators=[asdict(line) for line in found]))
        return
    for family, lines in groupby(found, key=lambda line: line.family):
        rows = [(line.name, line.onnx, _in_ir(line), line.to_ir, line.to_onnx) for line in lines]
        table(("operator", "ONNX", "IR", "ONNX → IR", "IR → ONNX"), rows, f"{family}:")
        echo("")


def _in_ir(line: Line) -> str:
    """The operator sets of an operator's layers, and their types if they are not its name."""
    others = [type for type in line.layers if type != line.name]
    return f"{line.ir} {', '.join(others)}".strip()


def _is_called(operator: str, wanted: str) -> bool:
    """Whether a pattern of names means an operator, by its name in either format too."""
    from fnmatch import fnmatchcase

    from bridge.show.coverage import called

    return any(fnmatchcase(name.lower(), wanted.lower()) for name in called(operator))


def _quirks(as_json: bool) -> None:
    from bridge.quirks import by_name

    if as_json:
        names = ("name", "engine", "releases", "symptom", "issue", "cost")
        found = [{name: getattr(quirk, name) for name in names} for quirk in by_name()]
        echo_json(document(quirks=found))
        return
    for quirk in by_name():
        echo(f"{quirk.name}:")
        echo(f"  {quirk.symptom}")
        facts = [
            ("seen in", f"{quirk.engine} {quirk.releases}"),
            ("upstream", quirk.issue),
            ("where", quirk.fires),
            ("safe", quirk.safe),
            ("costs", quirk.cost),
            ("file", f"bridge/quirks/{quirk.file}"),
        ]
        for name, fact in facts:
            if fact:
                echo(f"  {name + ':':10}{fact}")
        echo("")
