"""`bridge inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridge.cli.keywords import takes_options
from bridge.cli.options import AsJson, Debug, Force, option
from bridge.cli.output import document, echo, echo_json, size_of, table, write_text
from bridge.errors import UsageError
from bridge.files import opened
from bridge.options import IrOptions

if TYPE_CHECKING:
    from bridge.neutral.graph import Model


FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="The model: .onnx, .xml for IR, or - for ONNX from a stream."
    ),
]
AsGraph = Annotated[bool, option(None, "Print every node, as Bridge has read it.", "--graph")]
ShowCost = Annotated[
    bool,
    option(
        None,
        "Tell multiplications, weights and activations, of each branch too. An If costs "
        "as much as its larger branch; an open dimension counts as 1.",
        "--cost",
    ),
]
Quirks = Annotated[
    bool,
    option(
        None,
        "Show where a conversion to IR works round faults of engines, and why. "
        "--device, --openvino, --value and --input-shape are for this.",
        "--quirks",
    ),
]
GraphPage = Annotated[
    Path | None,
    option(None, "Write a page: the tree of Ifs and Loops, with a search.", form="FILE.html"),
]
Picture = Annotated[
    Path | None,
    option(None, "Write a picture of the Ifs, Loops and their ports.", form="FILE.svg"),
]
Coverage = Annotated[
    Path | None,
    option(None, "Colour branches by the result of 'bridge check --json'.", form="CHECK.json"),
]


@takes_options(IrOptions, ("device", "input_shapes", "limits", "openvino", "values", "weights"))
def inspect(
    file: FileArgument,
    *,
    options: dict[str, Any],
    written: dict[str, Any],
    as_json: AsJson = False,
    graph: AsGraph = False,
    cost: ShowCost = False,
    quirks: Quirks = False,
    html: GraphPage = None,
    svg: Picture = None,
    coverage: Coverage = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Show inputs, outputs, operators, and the tree of Ifs and Loops with their ports.

    Operators have the names of Bridge's vocabulary, which 'bridge ops' lists.

    Examples:
      bridge inspect model.onnx
      bridge inspect model.xml --json
      bridge inspect model.xml --graph
      bridge inspect model.onnx --cost
      bridge inspect model.onnx --quirks --openvino 2025.2
      bridge inspect model.onnx --svg tree.svg --html tree.html
      bridge check model.onnx --json > check.json
      bridge inspect model.onnx --html tree.html --coverage check.json
    """
    if coverage is not None and html is None and svg is None:
        raise UsageError("--coverage is painted into a page or a picture: give --html or --svg")
    if as_json and graph:
        raise UsageError("--graph is for people and --json for scripts: ask for one of them")
    if quirks:
        _print_quirks(file, options, as_json)
        return
    import bridge
    from bridge.cli.streams import source_of
    from bridge.files.kinds import PAGE, PICTURE
    from bridge.library.outputs import require_outputs
    from bridge.limits import read_limits, usually

    with usually(read_limits(options["limits"])):
        outputs = {path: kind for path, kind in ((html, PAGE), (svg, PICTURE)) if path is not None}
        others = [path for path in (options["weights"], coverage) if path is not None]
        require_outputs(outputs, [file], others, force)
        model = bridge.load(source_of(file), options["weights"])
        if html is not None or svg is not None:
            check = None if coverage is None else _read(coverage)
            _draw(model, file, html, svg, check, quiet=as_json)
        if as_json or graph or (html is None and svg is None):
            _print(model, file, graph, as_json, cost)


def _print(model: Model, file: Path, graph: bool, as_json: bool, cost: bool) -> None:
    """Prints every node of the model, or its description, or its cost."""
    from bridge.neutral.cost import costs
    from bridge.show.cost import as_json as cost_as_json, lines
    from bridge.show.description import describe
    from bridge.show.text import as_text

    if graph:
        from bridge.neutral.printer import show

        echo(*show(model.graph).split("\n"))
        return
    if cost and not as_json:
        head = ("", "multiplications", "weights", "activations")
        table(head, list(lines(costs(model.graph))))
        return
    description = describe(model, str(file))
    if cost:
        description["cost"] = cost_as_json(costs(model.graph))
    if as_json:
        echo_json(description)
    else:
        echo(*as_text(description).split("\n"))


def _print_quirks(file: Path, options: dict[str, Any], as_json: bool) -> None:
    """Prints which quirks fire where in a conversion of an ONNX model to IR."""
    import bridge
    from bridge.cli.streams import source_of
    from bridge.files.atomic_write import scratch_folder
    from bridge.quirks import named

    if file.suffix.lower() == ".xml":
        raise UsageError(f"{file}: is an IR; quirks fire when an ONNX model becomes an IR")
    with scratch_folder() as folder:
        report = bridge.convert(source_of(file), folder / "model.xml", **options)
    places: dict[str, list[str]] = {}
    for name, place in report.quirks:
        places.setdefault(name, []).append(place)
    if as_json:
        fired = [
            {"name": name, "symptom": named(name).symptom, "places": found}
            for name, found in places.items()
        ]
        echo_json(document(quirks=fired))
        return
    if not places:
        echo("no quirk fires")
    for name, found in places.items():
        quirk = named(name)
        echo(name, f"  fault: {quirk.symptom}", f"  same meaning: {quirk.safe}")
        echo(*(f"  at {place}" for place in found))


def _draw(
    model: Model, file: Path, html: Path | None, svg: Path | None, check: Any, quiet: bool
) -> None:
    """Writes a page and a picture of the model, and says so unless scripts are to read it."""
    from bridge.show.layers import layers_with_bodies
    from bridge.show.outline import outline
    from bridge.show.page import page
    from bridge.show.picture import picture

    layers = layers_with_bodies(file) if file.suffix.lower() == ".xml" else None
    made = outline(model, str(file), layers)
    for path, draw in ((html, page), (svg, picture)):
        if path is not None:
            write_text(path, draw(made, check))
            if not quiet:
                echo(f"wrote {path} ({size_of(path.stat().st_size)})")


def _read(path: Path) -> Any:
    """A check's JSON."""
    import json

    try:
        with opened(path) as file:
            return json.load(file)
    except (OSError, RecursionError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read as a check's JSON: {error}") from error
