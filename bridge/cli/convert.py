"""`bridge convert`."""

from __future__ import annotations

from argparse import BooleanOptionalAction
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.cli.options import (
    add_debug,
    add_limit,
    add_quiet,
    given_limits,
    input_shapes,
    output_ranks,
    states,
)  # fmt: skip
from bridge.cli.output import echo, progress, size_of
from bridge.cli.parser import Parser, at_least

USAGE = "[OPTION]... SOURCE DESTINATION"


def add_arguments(parser: Parser) -> None:
    """The arguments of `run`."""
    add = parser.add_argument
    add(
        "source", metavar="SOURCE", type=Path,
        help="The model to read: .onnx, .onnxtxt, or .xml for IR.",
    )  # fmt: skip
    add(
        "destination", metavar="DESTINATION", type=Path,
        help="What to write; its suffix says the format.",
    )  # fmt: skip
    add(
        "--opset", metavar="N", type=at_least(1),
        help="ONNX operator set to write (default: the source's own if it is or was ONNX, else "
        "21).",
    )  # fmt: skip
    add(
        "--input-shape", metavar="NAME=[DIM,...]", action="append",
        help="Give an input another shape; may be repeated. A dimension is a size, ? for any size, "
        "a range like 1..8, or a symbol. An input that has a default value stays one in IR only if "
        "it is named here.",
    )  # fmt: skip
    add("--compress-to-fp16", action="store_true", help="Store f32 constants as f16 (IR only).")
    add(
        "--keep-branches", action="store_true",
        help="Never prune a branch of an If (IR only); OpenVINO may then be unable to run the "
        "model. A branch that contradicts itself is refused.",
    )  # fmt: skip
    add(
        "--output-rank", metavar="NAME=RANK", action="append",
        help="Say the rank of an output that may have several (IR only); may be repeated. Without "
        "it, an output whose rank data decide becomes NAME.data and NAME.shape.",
    )  # fmt: skip
    add(
        "--stateful", action="store_true",
        help="Make variables of the inputs and outputs that are a state between calls by their "
        "names, as past_key_values.0.key and present.0.key are (IR only): what OpenVINO GenAI "
        "runs.",
    )  # fmt: skip
    add(
        "--state", metavar="INPUT=OUTPUT", action="append",
        help="Make a variable of this input and output (IR only); may be repeated.",
    )  # fmt: skip
    add(
        "--beam-idx", action="store_true",
        help="Give a stateful model the input beam_idx, which reorders the sequences of its "
        "variables before a call (IR only); OpenVINO GenAI wants it.",
    )  # fmt: skip
    add(
        "--quirks", metavar="default|old|none", default="default",
        help="Which faults of engines are worked round: all that the newest releases have, those "
        "of old releases too, or none, for other readers and plugins (`bridge ops --quirks` lists "
        "them).",
    )  # fmt: skip
    add(
        "--external-data", action=BooleanOptionalAction,
        help="Store constants beside the model (ONNX only; default: when they pass 1 GiB).",
    )  # fmt: skip
    add(
        "--weights", metavar="FILE.bin", type=Path,
        help="The weights of an IR source, where they have another name.",
    )  # fmt: skip
    add(
        "--force", action="store_true",
        help="Overwrite a .bin or .data that stands where the destination's goes, but beside no "
        "model.",
    )  # fmt: skip
    add_limit(parser)
    add(
        "--check", action="store_true",
        help="Run both models afterwards and compare what they compute.",
    )  # fmt: skip
    add_quiet(parser)
    add_debug(parser, "Verify the graph after each pass")


def run(
    *,
    source: Path,
    destination: Path,
    input_shape: Sequence[str] | None,
    output_rank: Sequence[str] | None,
    stateful: bool,
    state: Sequence[str] | None,
    weights: Path | None,
    limit: Sequence[str] | None,
    check: bool,
    quiet: bool,
    **options: Any,
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
    """
    import bridge

    if check:
        from bridge.cli.check import require_engines

        require_engines(source, destination)
    shapes, limits = input_shapes(input_shape or ()), given_limits(limit)
    with progress(f"converting {source}", quiet) as doing:
        report = bridge.convert(
            source,
            destination,
            input_shapes=shapes,
            output_ranks=output_ranks(output_rank),
            stateful=states(state, stateful),
            weights=weights,
            limits=limits,
            progress=lambda step: doing(f"{step} done"),
            **options,
        )
    if not quiet:
        files = (f"{path} ({size_of(path.stat().st_size)})" for path in report.files)
        echo(f"wrote {' and '.join(files)}")
        for line in report.pruned:
            echo(f"pruned: {line}")
        for line in report.notes:
            echo(f"note: {line}")
    if check:
        from bridge.cli.check import run_check

        sizes = _sizes(source, weights, shapes, limits)
        run_check(source, destination, quiet, sizes=sizes, weights=weights, limits=limits)


def _sizes(
    source: Path,
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
