"""`bridge convert`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.cli.keywords import takes_options
from bridge.cli.models import Job, found, placed, sharded
from bridge.cli.options import (
    AsJson,
    Jobs,
    Quiet,
    Shard,
    Verbose,
    files_of_values,
    option,
    states,
)
from bridge.cli.output import echo, echo_json, progress, report_as_json, size_of
from bridge.cli.streams import STREAM, destination_of, errors_aside, source_of
from bridge.errors import UsageError
from bridge.files import companion
from bridge.options import ConvertOptions
from bridge.options.option import CHECK, MANY, OUTPUT, STATE
from bridge.report import Report

CHECKED = ("input_shapes", "input_types", "limits", "openvino", "values", "weights")
"""The options of a conversion that its check has, too."""


SourceArgument = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="A model: .onnx, .onnxtxt, .xml for IR, or - for ONNX from a stream. With "
        "--output-dir also many, folders and patterns.",
    ),
]
Destination = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="DESTINATION",
        help="The .onnx or .xml to write; a folder, for the source's name; or - for a stream. "
        "Without it: the other format, beside SOURCE.",
    ),
]
OutputFolder = Annotated[
    Path | None,
    option(MANY, "Write all models here, in the other format, under their names.", form="DIR"),
]
State = Annotated[
    list[str] | None,
    option(STATE, "An input and the output that is its next state.", form="INPUT=OUTPUT"),
]
CheckAfterwards = Annotated[
    bool,
    option(CHECK, "Run both models and compare their outputs; see 'bridge check'.", "--check"),
]
DebugRun = Annotated[
    bool,
    option(OUTPUT, "Run the graph after each pass; name the first that differs.", "--debug-run"),
]


@takes_options(ConvertOptions)
def convert(
    source: SourceArgument,
    destination: Destination = None,
    *,
    options: dict[str, Any],
    written: dict[str, Any],
    output_dir: OutputFolder = None,
    jobs: Jobs = None,
    shard: Shard = None,
    state: State = None,
    check: CheckAfterwards = False,
    debug_run: DebugRun = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Convert a model: ONNX to OpenVINO IR, IR to ONNX, or within one format.

    A complete conversion replaces the files at DESTINATION; a failed one leaves them as they were.

    Examples:
      bridge convert model.onnx --check
      bridge convert model.xml model.onnx --opset 17
      bridge convert model.onnx --input-shape 'x=[1,3,?,?]' --compress-to-fp16
      bridge convert model.onnx small.onnx --value sr=16000
      bridge convert model.onnx head.onnx --outputs features --rename x=image
      bridge convert models/ --output-dir converted --jobs 2
    """
    if state:
        options["stateful"] = states(state)
    arrays = files_of_values(written["values"])
    targets = destination or []
    given = [Path(text) for text in written["outputs"] or ()]
    if not targets and len(given) == 1 and _is_model(given[0]):
        targets, options["outputs"] = given, None
    if output_dir is not None:
        many = placed(found([source, *targets]), output_dir, bool(options["stateful"]))
        if not (options["weights"] or check or debug_run):
            many = sharded(many, shard)
            results = [job.other for job in many if job.other is not None]
            _require_places(results, [job.model for job in many], arrays)
            from bridge.cli.many import convert_many

            convert_many(many, options, jobs or 1, as_json, quiet)
            return
        source, targets, shard = *_only(many, jobs, shard), None
    target = _single_target(source, targets, shard, options["force"])
    if arrays and target != STREAM:
        _require_places([target], [], arrays)
    if debug_run:
        from bridge.check.diagnosis.stages import Watcher

        options["debug"] = Watcher()
    with errors_aside(as_json and target == STREAM):
        _convert(source, target, options, check, as_json, quiet, verbose)


def _only(many: Sequence[Job], jobs: int | None, shard: str | None) -> tuple[Path, list[Path]]:
    """The only model of a folder to write, and its place there, which is made."""
    target = many[0].other
    if len(many) > 1 or jobs or shard or target is None:
        raise UsageError("--weights, --check and --debug-run are for one model")
    target.parent.mkdir(parents=True, exist_ok=True)
    return many[0].model, [target]


def _single_target(source: Path, targets: Sequence[Path], shard: str | None, force: bool) -> Path:
    """What one model becomes; UsageError where the arguments are not for one model. Without a
    target it is the model of the other format beside the source: an ONNX model that is there stays,
    because it may be what the IR was made of."""
    if shard:
        raise UsageError("--shard takes a part of many models, with --output-dir DIR")
    if source.is_dir():
        raise UsageError(f"{source}: is a directory; convert its models with --output-dir DIR")
    if source == STREAM and not targets:
        raise UsageError("Missing argument 'DESTINATION'")
    if len(targets) > 1:
        raise UsageError("one SOURCE goes to one DESTINATION; many go to --output-dir DIR")
    if targets and not (targets[0].is_dir() and source.is_file() and not _is_model(targets[0])):
        return targets[0]
    (job,) = placed({source: source.parent}, targets[0] if targets else source.parent)
    assert job.other is not None
    if not targets and job.other.suffix == ".onnx" and job.other.exists() and not force:
        raise UsageError(f"{job.other}: is there already; name it, or say that it may go (--force)")
    return job.other


def _require_places(
    results: Sequence[Path], models: Sequence[Path], arrays: Sequence[Path]
) -> None:
    """Raises UsageError where a result would overwrite a file that is read."""
    from bridge.library.outputs import require_outputs

    require_outputs(dict.fromkeys([*results, *map(companion, results)]), models, arrays)


def _is_model(path: Path) -> bool:
    """Whether the suffix of a path is a model's."""
    return path.suffix.lower() in (".onnx", ".xml")


def _convert(
    source: Path,
    destination: Path,
    options: dict[str, Any],
    check: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Converts one model, prints the report, and checks the result if the user asks for it."""
    import bridge

    streamed = destination == STREAM
    if streamed and (check or options["external_data"]):
        raise UsageError("-: is a stream of one file; --check and --external-data need a file")
    if streamed:
        options["external_data"] = False
    if check:
        if options["outputs"] or options["rename"]:
            raise UsageError("--check compares whole models: leave out --outputs and --rename")
        from bridge.cli.check import require_engines

        require_engines(source, destination)
    given = source_of(source)
    with destination_of(destination) as file, progress(f"converting {source}", quiet) as doing:
        report = bridge.convert(given, file, **options, progress=lambda step: doing(f"{step} done"))
        if callable(options["debug"]):
            report.notes += options["debug"].lines()
        data = report_as_json(report)
    if streamed:
        data["files"] = [{**file, "name": "-"} for file in data["files"]]
    if as_json and not check:
        echo_json(data, aside=streamed)
    elif not (quiet or as_json):
        _print(report, streamed, verbose)
    if check:
        from bridge.cli.check import run_check

        also = {name: options[name] for name in CHECKED}
        also["device"] = options["device"] if options["device"] != "CPU" else None
        run_check(given, destination, quiet, verbose, as_json, conversion=data, **also)


def _print(report: Report, streamed: bool, verbose: bool) -> None:
    if not streamed:
        files = (f"{path} ({size_of(path.stat().st_size)})" for path in report.files)
        weights = f"; weights: {report.weights}" if report.weights else ""
        echo(f"wrote {' and '.join(files)}{weights}")
    for line in report.lines() if verbose else report.short_lines("-v"):
        echo(line, aside=streamed)
    for name, place in report.quirks if verbose else ():
        echo(f"quirk: {name} at {place}", aside=streamed)
