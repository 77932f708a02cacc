"""`bridge check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.cli.many import Cache, Jobs, Junit, check_many
from bridge.cli.models import found, is_ir, is_many, not_compared, paired
from bridge.cli.options import (
    AsJson,
    Debug,
    Force,
    Ifs,
    InputShape,
    Limit,
    Quiet,
    Values,
    Weights,
    files_of_values,
    given_limits,
    given_ranges,
    given_sizes,
    given_values,
    input_shapes,
)
from bridge.cli.output import echo, echo_json, progress, write_text
from bridge.cli.streams import source_of
from bridge.errors import BridgeError, UsageError
from bridge.options import DEVICES, IFS


def check(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="The model to hold others to; - for ONNX from a stream. A folder or a pattern "
            "stands for the models in it.",
        ),
    ],
    other: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="OTHER",
            help="The model to compare with; without it, MODEL is converted there and back. More "
            "than one, and with --jobs, --junit or --cache any, are checked by themselves.",
        ),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Inputs to draw; with --inputs and 0, no others are drawn or sought for branches.",
        ),
    ] = 4,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="What the inputs are drawn from.")
    ] = 0,
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Inputs of your own, which run first: an .npz with an array for each input, a "
            "folder of these, or test_data_set_*/input_*.pb; may be repeated.",
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="NAME=LOW..HIGH",
            help="Draw numbers for an input within limits, for example x=0..1; may be repeated.",
        ),
    ] = None,
    save_inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Save each input that ran in a new folder, as input-N.npz, or input-N-differs.npz "
            "where an output differs; --inputs takes them.",
        ),
    ] = None,
    reduce: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where something differs or fails, write the smallest part of MODEL that still "
            "does, with its inputs in an .npz beside it.",
        ),
    ] = None,
    rtol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[OUTPUT=]X",
            help="Relative tolerance (default: 0.001), of one output or of all; may be repeated.",
        ),
    ] = None,
    atol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[OUTPUT=]X",
            help="Absolute tolerance (default: 1e-05), of one output or of all; may be repeated.",
        ),
    ] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIM=N",
            help="Fix a dimension, by its symbol or as INPUT.AXIS, to a size or a range like 2..8; "
            "may be repeated.",
        ),
    ] = None,
    value: Values = None,
    input_shape: InputShape = None,
    ifs: Ifs = IFS[0],
    device: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(DEVICES),
            autocompletion=lambda: list(DEVICES),
            help="The plugin of OpenVINO that the IR is for: layers, element types, sizes and the "
            "inputs of branches are held to what it takes. The CPU plugin runs the IR all the "
            "same.",
        ),
    ] = None,
    openvino: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE",
            help="The oldest release of OpenVINO that the IR is for, for example 2024.6.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="End a run that takes longer, as a Loop does whose condition stays true, or the "
            "loading of a model: for example --timeout 5.",
        ),
    ] = 60.0,
    weights: Weights = None,
    limit: Limit = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print every output, branch and input.")
    ] = False,
    as_json: AsJson = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write a page with the tree of Ifs and Loops and what was found of each branch.",
        ),
    ] = None,
    jobs: Jobs = None,
    junit: Junit = None,
    cache: Cache = None,
    force: Force = False,
    hook: Annotated[
        bool,
        typer.Option(
            "--hook",
            help="Check each file by itself, as a hook of a commit gets them; an .xml that is no "
            "IR is passed over.",
        ),
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run a model and its conversion on the same inputs and compare every output.

    Inputs are sought that take each branch of each If, and that run each Loop
    never, once and several times. What no input reaches is forced, in both
    models alike. Of many models each is checked by itself; an IR beside the
    ONNX model of its name with that.
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
    options: dict[str, Any] = dict(
        samples=samples, seed=seed, rtol=_tolerance("--rtol", rtol),
        atol=_tolerance("--atol", atol), ranges=given_ranges(ranges),
        inputs=inputs, save_inputs=save_inputs, reduce=reduce, sizes=given_sizes(size),
        weights=weights, limits=given_limits(limit), values=given_values(value), timeout=timeout,
        input_shapes=input_shapes(input_shape or ()), ifs=ifs, device=device, openvino=openvino,
    )  # fmt: skip
    given = [model, *(other or ())]
    if hook:
        given = [path for path in given if path.suffix.lower() != ".xml" or is_ir(path)]
    if jobs or junit or cache or hook or is_many(given):
        if weights or report or inputs or save_inputs or reduce:
            raise UsageError(
                "--weights, --report, --inputs, --save-inputs and --reduce are for one model"
            )
        require_engines(model, None)
        pairs = paired(found(given))
        if junit is not None:
            from bridge.kinds import JUNIT
            from bridge.outputs import require_outputs

            others = [*files_of_values(value), *(cache.glob("*") if cache else ())]
            read = [path for job in pairs for path in (job.model, job.other) if path is not None]
            require_outputs({junit: JUNIT}, read, others, force)
        check_many(pairs, options, jobs or 1, cache, junit, as_json=as_json, quiet=quiet)
        return
    against = given[1] if other else None
    require_engines(model, against)
    if report is not None:
        from bridge.check.own_inputs import files_of
        from bridge.kinds import PAGE
        from bridge.outputs import require_outputs

        others = [*files_of_values(value), *([weights] if weights else ()), *files_of(inputs)]
        require_outputs({report: PAGE}, given, others, force)
    run_check(source_of(model), against, quiet, verbose, as_json, report, force=force, **options)


def _tolerance(option: str, texts: list[str] | None) -> dict[str, float]:
    """A tolerance by the output's name, with "*" for the others."""
    given: dict[str, float] = {}
    for text in texts or ():
        name, _, number = text.rpartition("=")
        try:
            given[name or "*"] = float(number)
        except ValueError:
            raise UsageError(
                f"{option} {text}: is no number; write for example 1e-3 or y=1e-2"
            ) from None
    return given


def require_engines(model: Path, other: Path | None) -> None:
    """Raises UsageError where an engine that the check cannot do without is not installed."""
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
    """Checks and prints the report (when quiet: only a bad one); exits with 1 where something
    differs. As JSON it goes into that of the `conversion` before it, if there is one. Raises
    BridgeError with the report where nothing differs, but something failed."""
    from bridge.check import check

    name = model if isinstance(model, Path) else "the model"
    try:
        with progress(f"checking {name}", quiet) as doing:
            report = check(model, other, progress=doing, **options)
        if other is None and isinstance(model, Path):
            report.notes += not_compared(model)
        if page is not None:
            write_text(page, report.as_html())
    except BridgeError as error:
        error.known = conversion
        raise
    text, data = str(report) if verbose else report.summary(), report.as_json()
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
