"""`bridge convert`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.cli.options import (
    Debug,
    Limit,
    Quiet,
    Weights,
    given_limits,
    input_shapes,
    output_ranks,
    states,
)
from bridge.cli.output import echo, progress, size_of
from bridge.errors import UsageError
from bridge.options import QUIRKS

_ONNX, _IR = "Writing ONNX", "Writing IR"


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="The model to read: .onnx, .onnxtxt, .xml for IR, or - for ONNX from a stream.",
        ),
    ],
    destination: Annotated[
        Path,
        typer.Argument(
            metavar="DESTINATION",
            help="What to write; its suffix says the format. - writes ONNX to a stream.",
        ),
    ],
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
    input_shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=[DIM,...]",
            help="Give an input another shape; may be repeated. A dimension is a size, ? for any "
            "size, a range like 1..8, or a symbol. An input that has a default value stays one in "
            "IR only if it is named here.",
        ),
    ] = None,
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
            help="Give a stateful model the input beam_idx, which reorders the sequences of its "
            "variables before a call; OpenVINO GenAI wants it.",
        ),
    ] = False,
    quirks: Annotated[
        str,
        typer.Option(
            metavar="|".join(QUIRKS),
            autocompletion=lambda: list(QUIRKS),
            help="Which faults of engines are worked round: all that the newest releases have, "
            "those of old releases too, or none, for other readers and plugins ('bridge ops "
            "--quirks' lists them).",
        ),
    ] = QUIRKS[0],
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
            help="Overwrite a .bin or .data that stands where the destination's goes, but beside "
            "no model.",
        ),
    ] = False,
    limit: Limit = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Run both models afterwards and compare what they compute."),
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Convert a model: ONNX to OpenVINO IR, IR to ONNX, or within one format.

    What stood at DESTINATION is replaced when the conversion is whole, else left as it was.

    Examples:
      bridge convert model.onnx model.xml
      bridge convert model.xml model.onnx --opset 17
      bridge convert model.onnx model.xml --input-shape 'x=[1,3,?,?]' --compress-to-fp16
      bridge convert model.onnx model.xml --check
      bridge convert decoder.onnx decoder.xml --stateful --beam-idx
      bridge convert model.onnx model.xml --limit nodes=1000000 --limit depth=2000
      bridge convert model.xml - | other-program
    """
    import bridge
    from bridge.cli.streams import STREAM, destination_of, source_of

    streamed = destination == STREAM
    if streamed and (check or external_data):
        raise UsageError("-: is a stream of one file; --check and --external-data need a file")
    if check:
        from bridge.cli.check import require_engines

        require_engines(source, destination)
    shapes, limits = input_shapes(input_shape or ()), given_limits(limit)
    given = source_of(source)
    with destination_of(destination) as file, progress(f"converting {source}", quiet) as doing:
        report = bridge.convert(
            given,
            file,
            opset=opset,
            input_shapes=shapes,
            compress_to_fp16=compress_to_fp16,
            keep_branches=keep_branches,
            output_ranks=output_ranks(output_rank),
            stateful=states(state, stateful),
            beam_idx=beam_idx,
            quirks=quirks,
            external_data=False if streamed else external_data,
            weights=weights,
            force=force,
            limits=limits,
            debug=debug,
            progress=lambda step: doing(f"{step} done"),
        )
    if not quiet:
        if not streamed:
            files = (f"{path} ({size_of(path.stat().st_size)})" for path in report.files)
            echo(f"wrote {' and '.join(files)}")
        for line in report.pruned:
            echo(f"pruned: {line}", aside=streamed)
        for line in report.notes:
            echo(f"note: {line}", aside=streamed)
    if check:
        from bridge.cli.check import run_check

        sizes = _sizes(given, weights, shapes, limits)
        run_check(given, destination, quiet, sizes=sizes, weights=weights, limits=limits)


def _sizes(
    source: Path | bytes,
    weights: Path | None,
    shapes: Mapping[str, Sequence[Any]],
    limits: Mapping[str, int],
) -> dict[str, Any]:
    """The sizes and ranges that the inputs' new shapes give to open dimensions of the source, as
    a check takes them: by the dimension's symbol, or as `input.axis` where it has none."""
    if not shapes:
        return {}
    import bridge
    from bridge.neutral.types import innermost

    sizes = {}
    for value in bridge.load(source, weights, limits=limits).graph.inputs:
        new = next((shapes[name] for name in value.names if name in shapes), ())
        shape = innermost(value.type).shape
        old = (None,) * len(new) if shape is None else shape
        for axis, (before, after) in enumerate(zip(old, new, strict=False)):
            if not isinstance(before, int) and not isinstance(after, str):
                sizes[before if isinstance(before, str) else f"{value.name}.{axis}"] = after
    return sizes
