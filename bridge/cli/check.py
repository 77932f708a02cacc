"""`bridge check`."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.cli.keywords import takes_options
from bridge.cli.many import check_many
from bridge.cli.models import found, is_ir, is_many, not_compared, paired, sharded
from bridge.cli.options import (
    AsJson,
    CacheFolder,
    Debug,
    Jobs,
    Junit,
    Quiet,
    Shard,
    Verbose,
    files_of_values,
    option,
)
from bridge.cli.output import echo, echo_json, progress, write_text
from bridge.cli.streams import source_of
from bridge.errors import BridgeError, UsageError
from bridge.options import CheckOptions
from bridge.options.option import MANY, OUTPUT

OPTIONS = (
    "atol", "device", "force", "ifs", "input_shapes", "input_types", "inputs", "limits", "openvino",
    "quick", "ranges", "reduce", "rtol", "samples", "save_inputs", "seed", "sizes", "timeout",
    "values", "weights",
)  # fmt: skip
"""The library's options that the command has."""


ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model, - for ONNX from a stream, or folders and patterns of models.",
    ),
]
Other = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="OTHER",
        help="The model to compare with; without it, MODEL is converted there and back.",
    ),
]
ReportPage = Annotated[
    Path | None,
    option(OUTPUT, "Write a page, FILE.html; for many models a folder.", form="FILE|DIR"),
]
Hook = Annotated[
    bool,
    option(
        MANY, "For commit hooks: check each file alone, and pass over .xml of others.", "--hook"
    ),
]


@takes_options(CheckOptions, OPTIONS, device=None)
def check(
    model: ModelArgument,
    other: Other = None,
    *,
    options: dict[str, Any],
    written: dict[str, Any],
    report: ReportPage = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    jobs: Jobs = None,
    junit: Junit = None,
    cache: CacheFolder = None,
    shard: Shard = None,
    hook: Hook = False,
    debug: Debug = False,
) -> None:
    """Run a model and its conversion on the same inputs and compare every output.

    The check looks for inputs that take each branch of each If, and that run each
    Loop never, once and several times. A branch that no input reaches is forced,
    in both models alike. Of many models each is checked alone; an IR with the
    ONNX model of the same name beside it, if there is one. More than two models
    are many, and any with --jobs, --junit, --cache or --shard.
    Exits with 1 when something differs. Needs the extra "check".

    Examples:
      bridge check model.onnx
      bridge check model.onnx model.xml --samples 10 --verbose
      bridge check model.onnx --report report.html
      bridge check model.xml --size batch=2
      bridge check model.onnx --inputs recorded.npz --save-inputs ran
      bridge check model.onnx --reduce small.onnx
      bridge check model.onnx --range image=0..1 --rtol scores=1e-2
      bridge check model.onnx --device NPU --input-shape 'x=[1,3,224,224]'
      bridge check models/ --jobs 2 --junit report.xml --cache .bridge-cache
    """
    for name in ("rtol", "atol"):
        if not options[name]:
            del options[name]
    arrays = files_of_values(written["values"])
    given = [model, *(other or ())]
    if hook:
        given = [path for path in given if path.suffix.lower() != ".xml" or is_ir(path)]
    if jobs or junit or cache or shard or hook or is_many(given):
        if any(options[name] for name in ("weights", "inputs", "save_inputs", "reduce")):
            raise UsageError("--weights, --inputs, --save-inputs and --reduce are for one model")
        require_engines(model, None)
        pairs = sharded(paired(found(given)), shard)
        read = [path for job in pairs for path in (job.model, job.other) if path is not None]
        cached = cache.glob("*") if cache else ()
        _require_places(report, junit, read, [*arrays, *cached], options["force"])
        check_many(pairs, options, jobs or 1, cache, junit, report, shard, as_json, quiet)
        return
    against = given[1] if other else None
    require_engines(model, against)
    if report is not None:
        _require_page(report, given, arrays, options)
    run_check(source_of(model), against, quiet, verbose, as_json, report, **options)


def _require_places(
    pages: Path | None, junit: Path | None, read: list[Path], others: list[Path], force: bool
) -> None:
    """Raises UsageError where the results for many models would overwrite another file."""
    if junit is not None:
        from bridge.files.kinds import JUNIT
        from bridge.library.outputs import require_outputs

        require_outputs({junit: JUNIT}, read, others, force)
    if pages is not None:
        from bridge.cli.folder import require_folder

        require_folder(pages, force)


def _require_page(
    page: Path, given: list[Path], arrays: Sequence[Path], options: dict[str, Any]
) -> None:
    """Raises UsageError where the page for one model would overwrite another file."""
    from bridge.check.inputs.own import files_of
    from bridge.files.kinds import PAGE
    from bridge.library.outputs import require_outputs

    weights = [options["weights"]] if options["weights"] else []
    others = [*arrays, *weights, *files_of(options["inputs"])]
    require_outputs({page: PAGE}, given, others, options["force"])


def require_engines(model: Path, other: Path | None) -> None:
    """Raises UsageError if a required engine of the check is not installed."""
    from importlib.util import find_spec

    needs_openvino = other is None or ".xml" in (model.suffix.lower(), other.suffix.lower())
    if needs_openvino and find_spec("openvino") is None:
        raise UsageError("checking an IR needs OpenVINO: pip install 'onnx-openvino-bridge[check]'")


def run_check(
    model: Path | bytes,
    other: Path | None,
    quiet: bool,
    verbose: bool = False,
    as_json: bool = False,
    page: Path | None = None,
    conversion: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Checks and prints the report (when quiet: only a bad one); exits with 1 if outputs differ. As
    JSON, the report goes into the JSON of the `conversion` before it, if there is one. Raises
    BridgeError with the report if no output differs, but a part of the check failed."""
    from bridge.check.engines.remote import start

    files = [path.suffix.lower() for path in (model, other) if isinstance(path, Path)]
    start(files if len(files) == 2 else (".onnx", ".xml"))
    from bridge.check import check  # which takes about as long as importing the engines

    name = model if isinstance(model, Path) else "the model"
    try:
        with progress(f"checking {name}", quiet) as doing:
            report = check(model, other, progress=doing, **options)
        if other is None and isinstance(model, Path):
            report = replace(report, notes=(*report.notes, *not_compared(model)))
        if page is not None:
            write_text(page, report.as_html())
    except BridgeError as error:
        error.known = conversion
        raise
    text, data = report.details() if verbose else report.summary(), report.as_json()
    if conversion is not None:
        data = {**conversion, "check": data}
    if not (report.ok or report.different):
        failed = BridgeError(*text.split("\n"))
        failed.known = data
        raise failed
    if as_json:
        echo_json(data)
    elif not (quiet and report.ok):
        echo(*text.split("\n"))
        if page is not None and not quiet:
            echo(f"wrote {page}")
    if report.different:
        sys.exit(1)
