"""`bridge check`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.cli.options import add_debug, add_limit, add_quiet, given_limits, parse_dimension
from bridge.cli.output import echo, progress, require_file, write_text
from bridge.cli.parser import Parser, at_least
from bridge.errors import BridgeError, UsageError

if TYPE_CHECKING:
    from bridge.neutral.types import Interval


USAGE = "[OPTION]... MODEL [OTHER]"


def add_arguments(parser: Parser) -> None:
    """The arguments of `run`."""
    add = parser.add_argument
    add("model", metavar="MODEL", type=Path, help="The model to hold others to.")
    add(
        "other", metavar="OTHER", type=Path, nargs="?",
        help="The model to compare with; without it, MODEL is converted there and back.",
    )  # fmt: skip
    add("--samples", metavar="N", type=at_least(1), default=4, help="Inputs to draw (default: 4).")
    add(
        "--seed", metavar="N", type=at_least(0), default=0,
        help="What the inputs are drawn from (default: 0).",
    )  # fmt: skip
    add(
        "--rtol", metavar="X", type=float, default=1e-3,
        help="Relative tolerance (default: 0.001).",
    )  # fmt: skip
    add(
        "--atol", metavar="X", type=float, default=1e-5,
        help="Absolute tolerance (default: 0.00001).",
    )  # fmt: skip
    add(
        "--size", metavar="DIM=N", action="append",
        help="Fix a dimension, by its symbol or as INPUT.AXIS, to a size or a range like 2..8; may "
        "be repeated.",
    )  # fmt: skip
    add(
        "--weights", metavar="FILE.bin", type=Path,
        help="The weights of MODEL (of OTHER where MODEL is ONNX), where they have another name.",
    )  # fmt: skip
    add_limit(parser)
    add("-v", "--verbose", action="store_true", help="Print every output, branch and input.")
    add("--json", dest="as_json", action="store_true", help="Print JSON, for scripts.")
    add(
        "--report", metavar="FILE.html", type=Path,
        help="Write a page with the tree of Ifs and Loops and what was found of each branch.",
    )  # fmt: skip
    add_quiet(parser)
    add_debug(parser)


def run(
    *,
    model: Path,
    other: Path | None,
    samples: int,
    seed: int,
    rtol: float,
    atol: float,
    size: Sequence[str] | None,
    weights: Path | None,
    limit: Sequence[str] | None,
    verbose: bool,
    as_json: bool,
    report: Path | None,
    quiet: bool,
    debug: bool,
) -> None:
    """Run a model and its conversion on the same inputs and compare every output.

    Inputs are sought that take each branch of each If; branches that none reaches are forced, in
    both models alike. Exits with 1 when something differs. Needs the extra "check".

    Examples:
      bridge check model.onnx
      bridge check model.onnx model.xml --samples 10 --verbose
      bridge check model.onnx --report report.html
      bridge check model.xml --size batch=2
    """
    require_engines(model, other)
    if report is not None:
        require_file(report, ".html")
    sizes = dict(map(_size, size or ()))
    run_check(
        model, other, quiet, verbose, as_json, report,
        samples=samples, seed=seed, rtol=rtol, atol=atol, sizes=sizes, weights=weights,
        limits=given_limits(limit),
    )  # fmt: skip


def _size(text: str) -> tuple[str, int | Interval]:
    name, equals, number = text.rpartition("=")
    if not (name and equals and number[:1].isdecimal()):
        raise UsageError(f"--size {text}: is not DIM=N; write for example batch=2 or x.0=2")
    return name, parse_dimension(number, f"--size {text}")


def require_engines(model: Path, other: Path | None) -> None:
    """Raises UsageError where an engine that the check cannot do without is not installed."""
    from importlib.util import find_spec

    needs_openvino = other is None or ".xml" in (model.suffix.lower(), other.suffix.lower())
    if needs_openvino and find_spec("openvino") is None:
        raise UsageError("checking an IR needs OpenVINO: pip install 'onnx-openvino-bridge[check]'")


def run_check(
    model: Path,
    other: Path | None,
    quiet: bool,
    verbose: bool = False,
    as_json: bool = False,
    page: Path | None = None,
    **options: Any,
) -> None:
    """Checks and prints the report (when quiet: only a bad one); exits with 1 where something
    differs. Raises BridgeError with the report where nothing does, but something failed."""
    from bridge.check import check

    with progress(f"checking {model}", quiet) as doing:
        report = check(model, other, progress=doing, **options)
    if page is not None:
        write_text(page, report.as_html())
    text = str(report) if verbose else report.summary()
    if as_json:
        import json

        echo(json.dumps(report.as_json(), indent=2))
    if not (report.ok or report.different):
        raise BridgeError(text)
    if not as_json and not (quiet and report.ok):
        echo(text)
        if page is not None and not quiet:
            echo(f"wrote {page}")
    if report.different:
        sys.exit(1)
