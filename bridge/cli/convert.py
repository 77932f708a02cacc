"""`bridge convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.cli.many import Jobs, convert_many
from bridge.cli.models import found, placed
from bridge.cli.options import (
    AsJson,
    Debug,
    Device,
    Ifs,
    InputShape,
    Limit,
    Quiet,
    Release,
    Values,
    Weights,
    files_of_values,
    given_limits,
    given_values,
    input_shapes,
    new_names,
    output_ranks,
    states,
)
from bridge.cli.output import echo, echo_json, progress, report_as_json, size_of
from bridge.cli.streams import STREAM, destination_of, errors_aside, source_of
from bridge.errors import UsageError
from bridge.options import DEVICES, IFS
from bridge.report import Report

_ONNX, _IR = "Writing ONNX", "Writing IR"


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="The model to read: .onnx, .onnxtxt, .xml for IR, or - for ONNX from a stream. "
            "With --output-dir there may be many, and folders and patterns of them.",
        ),
    ],
    destination: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DESTINATION",
            help="What to write; its suffix says the format. A folder keeps the source's name, in "
            "the other format. - writes ONNX to a stream.",
        ),
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write here all models that are given, each in the other format and under its "
            "name.",
        ),
    ] = None,
    opset: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_ONNX,
            metavar="N",
            min=1,
            help="ONNX operator set to write (default: the source's own if it is or was ONNX, "
            "else 21).",
        ),
    ] = None,
    standard_operators: Annotated[
        bool,
        typer.Option(
            "--standard-operators",
            rich_help_panel=_ONNX,
            help="Write the standard's operators in place of those of other domains that the model "
            "has or had, as onnxruntime's com.microsoft.",
        ),
    ] = False,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--outputs",
            "--output",
            metavar="NAME,...",
            help="Cut the model at these values, which become its outputs; may be repeated. "
            "A file's name is taken for DESTINATION.",
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW",
            help="Rename an input or output; may be repeated. Other options take the new name.",
        ),
    ] = None,
    input_shape: InputShape = None,
    value: Values = None,
    compress_to_fp16: Annotated[
        bool,
        typer.Option("--compress-to-fp16", rich_help_panel=_IR, help="Store f32 constants as f16."),
    ] = False,
    keep_branches: Annotated[
        bool,
        typer.Option(
            "--keep-branches",
            rich_help_panel=_IR,
            help="Never prune a branch of an If; OpenVINO may then be unable to run the "
            "model. A branch that contradicts itself is refused.",
        ),
    ] = False,
    keep_metadata: Annotated[
        bool,
        typer.Option(
            "--keep-metadata",
            rich_help_panel=_IR,
            help="Keep metadata that a tool wrote for debugging, as the stack traces of PyTorch's "
            "exporter.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            rich_help_panel=_IR,
            help="Refuse to prune a branch of an If that data could take, and say what to give.",
        ),
    ] = False,
    trust_symbols: Annotated[
        bool,
        typer.Option(
            "--trust-symbols",
            help="Believe that sizes which inputs declare by one symbol are equal: an If that asks "
            "whether they are is then decided.",
        ),
    ] = False,
    output_rank: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=_IR,
            metavar="NAME=RANK",
            help="Say the rank of an output that may have several; may be repeated. "
            "Without it, an output whose rank data decide becomes NAME.data and NAME.shape.",
        ),
    ] = None,
    stateful: Annotated[
        bool,
        typer.Option(
            "--stateful",
            rich_help_panel=_IR,
            help="Make variables of the inputs and outputs that are a state between calls by their "
            "names, as past_key_values.0.key and present.0.key are: what OpenVINO GenAI "
            "runs.",
        ),
    ] = False,
    state: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=_IR,
            metavar="INPUT=OUTPUT",
            help="Make a variable of this input and output; may be repeated.",
        ),
    ] = None,
    beam_idx: Annotated[
        bool,
        typer.Option(
            "--beam-idx",
            rich_help_panel=_IR,
            help="Give a stateful model the inputs that OpenVINO GenAI gives: beam_idx, which "
            "reorders the sequences of its variables before a call, and, for a decoder of "
            "onnxruntime-genai, position_ids.",
        ),
    ] = False,
    one_decoder: Annotated[
        bool,
        typer.Option(
            "--one-decoder",
            rich_help_panel=_IR,
            help="Keep of a merged decoder (optimum's decoder_model_merged) the branch of later "
            "calls alone, with --stateful: half the layers. Right if that branch gives the same "
            "while the states are empty; --check runs both.",
        ),
    ] = False,
    device: Device = DEVICES[0],
    openvino: Release = None,
    ifs: Ifs = IFS[0],
    external_data: Annotated[
        bool | None,
        typer.Option(
            rich_help_panel=_ONNX,
            help="Store constants beside the model (default: when they pass 1 GiB).",
        ),
    ] = None,
    weights: Weights = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Overwrite the source itself, a file that is read-only or of another kind, and a "
            ".bin or .data that stands where the destination's goes, but beside no model.",
        ),
    ] = False,
    limit: Limit = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Run both models afterwards and compare what they compute."),
    ] = False,
    jobs: Jobs = None,
    as_json: AsJson = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell of each branch that is pruned.")
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
    debug_run: Annotated[
        bool,
        typer.Option(
            "--debug-run",
            help="Run the graph after each pass as plain ONNX in onnxruntime, and name the first "
            "pass or quirk after which a number differs.",
        ),
    ] = False,
) -> None:
    """Convert a model: ONNX to OpenVINO IR, IR to ONNX, or within one format.

    What stood at DESTINATION is replaced when the conversion is whole, else
    left as it was.

    Examples:
      bridge convert model.onnx model.xml
      bridge convert model.xml model.onnx --opset 17
      bridge convert model.onnx model.xml --input-shape 'x=[1,3,?,?]' --compress-to-fp16
      bridge convert model.onnx small.onnx --value sr=16000 --input-shape 'x=[1,512]'
      bridge convert model.onnx head.onnx --outputs features --rename x=image
      bridge convert model.onnx model.xml --check
      bridge convert model.onnx model.xml --device NPU --input-shape 'x=[1,3,224,224]'
      bridge convert model.onnx model.xml --openvino 2024.6
      bridge convert decoder.onnx decoder.xml --stateful --beam-idx
      bridge convert decoder_model_merged.onnx decoder.xml --stateful --one-decoder --check
      bridge convert model.onnx model.xml --limit nodes=1000000 --limit depth=2000
      bridge convert model.xml - | other-program
      bridge convert models/*.onnx --output-dir converted --jobs 2
    """
    from bridge.files import companion
    from bridge.outputs import require_outputs

    options: dict[str, Any] = dict(
        opset=opset,
        standard_operators=standard_operators,
        outputs=[name for text in outputs for name in text.split(",")] if outputs else None,
        rename=new_names(rename),
        input_shapes=input_shapes(input_shape or ()),
        values=given_values(value),
        compress_to_fp16=compress_to_fp16,
        keep_branches=keep_branches,
        keep_metadata=keep_metadata,
        strict=strict,
        trust_symbols=trust_symbols,
        output_ranks=output_ranks(output_rank),
        stateful=states(state, stateful),
        beam_idx=beam_idx,
        one_decoder=one_decoder,
        device=device,
        openvino=openvino,
        ifs=ifs,
        external_data=external_data,
        weights=weights,
        force=force,
        limits=given_limits(limit),
        debug="run" if debug_run else debug,
    )
    targets = destination or []
    given = [Path(text) for text in outputs or ()]
    if not targets and len(given) == 1 and _is_model(given[0]):
        targets, options["outputs"] = given, None
    if len(targets) == 1 and targets[0].is_dir() and source.is_file() and not _is_model(targets[0]):
        targets = [job.other for job in placed([source], targets[0]) if job.other is not None]
    if output_dir is not None:
        if weights or check:
            raise UsageError("--weights and --check are for one model, without --output-dir")
        many = placed(found([source, *targets]), output_dir)
        written = [job.other for job in many if job.other is not None]
        require_outputs(
            dict.fromkeys([*written, *map(companion, written)]),
            [job.model for job in many],
            files_of_values(value),
        )
        convert_many(many, options, jobs or 1, as_json, quiet)
    elif len(targets) == 1:
        if value and targets[0] != STREAM:
            beside = (targets[0], companion(targets[0]))
            require_outputs(dict.fromkeys(beside), [], files_of_values(value))
        with errors_aside(as_json and targets[0] == STREAM):
            _convert(source, targets[0], options, check, as_json, quiet, verbose)
    elif targets:
        raise UsageError("one SOURCE goes to one DESTINATION; many go to --output-dir DIR")
    else:
        raise UsageError("Missing argument 'DESTINATION'")


def _is_model(path: Path) -> bool:
    """Whether a path is that of a model by its suffix."""
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
    """Converts one model, prints what was done, and checks it where that is asked for."""
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
        data = report_as_json(report)
    if streamed:
        data["files"] = [{**file, "name": "-"} for file in data["files"]]
    if as_json and not check:
        echo_json(data, aside=streamed)
    elif not (quiet or as_json):
        _print(report, streamed, verbose)
    if check:
        from bridge.cli.check import run_check

        also = {name: options[name] for name in ("values", "weights", "limits", "openvino")}
        also["device"] = options["device"] if options["device"] != DEVICES[0] else None
        run_check(given, destination, quiet, as_json=as_json, conversion=data, **also)


def _print(report: Report, streamed: bool, verbose: bool) -> None:
    if not streamed:
        files = (f"{path} ({size_of(path.stat().st_size)})" for path in report.files)
        echo(f"wrote {' and '.join(files)}")
    for line in report.lines() if verbose else report.short_lines():
        echo(line, aside=streamed)
