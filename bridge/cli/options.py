"""Options that several commands share, and how their values are written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.errors import UsageError
from bridge.files import opened
from bridge.options.option import FILES, MANY, OUTPUT

AsJson = Annotated[
    bool,
    typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON document, for scripts."),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", rich_help_panel=OUTPUT, help="Print errors alone."),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", rich_help_panel=OUTPUT, help="Print all details."),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        rich_help_panel=FILES,
        help="Overwrite files of another kind, too.",
    ),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", rich_help_panel=FILES, help="Show the traceback of an error."),
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, rich_help_panel=MANY, help="Models to work on at once."),
]
Junit = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.xml", rich_help_panel=MANY, help="Write a report for CI, in JUnit's format."
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        metavar="I/N",
        rich_help_panel=MANY,
        help="Take one of N parts of the models, such as 3/8.",
    ),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=MANY,
        help="Keep verdicts here, for models that do not change.",
    ),
]

_SHAPE = r"(?s)(?P<name>.+?)=?\[(?P<dims>[^][]*)\]"
# More digits than a size can have are left to be refused.
_SIZE = r"\d{1,19}"
_INTERVAL = rf"({_SIZE})\.\.({_SIZE})?"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"


def input_shapes(texts: Sequence[str] | None) -> dict[str, tuple[Any, ...]]:
    """Shapes by input name, from texts like `x=[1,3,?,h,2..8]`: sizes, `?` for any size, symbols,
    and ranges. `x[1,-1],y[2]`, which OpenVINO's own converter takes, is two of them, with -1 for
    any size. Raises UsageError for other texts."""
    shapes: dict[str, tuple[Any, ...]] = {}
    for text in (one for given in texts or () for one in re.split(r"(?<=\]),", given)):
        match = re.fullmatch(_SHAPE, text)
        if match is None:
            raise UsageError(
                f"--input-shape {text}: is not NAME=[DIM,...]; write for example 'x=[1,3,?,h]', "
                "quoted, and 'x=[]' for a scalar"
            )
        if match["name"] in shapes:
            raise UsageError(f'--input-shape {text}: "{match["name"]}" is given twice')
        dims = match["dims"].split(",") if match["dims"].strip() else []
        shapes[match["name"]] = tuple(
            parse_dimension(dim.strip(), f"--input-shape {text}") for dim in dims
        )
    return shapes


def input_types(texts: Sequence[str] | None) -> dict[str, str]:
    """Element types by input name, from texts like `x=f32`; UsageError for other texts."""
    return _by_name("--input-type", texts, "NAME=TYPE", "x=f32", r"\w+")


def given_limits(texts: Sequence[str] | None) -> dict[str, int]:
    """Limits by name, from texts like `nodes=1000000`; UsageError for other texts."""
    found = _by_name("--limit", texts, "NAME=N", "nodes=1000000", _SIZE)
    return {name.strip(): int(number) for name, number in found.items()}


def given_sizes(texts: Sequence[str] | None) -> dict[str, Any]:
    """Sizes or Intervals by dimension, from texts like `batch=2` and `x.0=2..8`. Raises UsageError
    for other texts."""
    found = _by_name("--size", texts, "DIM=N", "batch=2 or x.0=2", r"\d.*")
    return {name: parse_dimension(size, f"--size {name}={size}") for name, size in found.items()}


def given_ranges(texts: Sequence[str] | None) -> dict[str, tuple[float, float]]:
    """Limits by input name, from texts like `x=0..1`. Raises UsageError for other texts."""
    limits = rf"(?i:{_NUMBER})\.\.(?i:{_NUMBER})"
    found = _by_name("--range", texts, "NAME=LOW..HIGH", "x=0..1", limits)
    pairs = {name: text.partition("..") for name, text in found.items()}
    return {name: (float(low), float(high)) for name, (low, _, high) in pairs.items()}


def given_values(texts: Sequence[str] | None) -> dict[str, Any]:
    """Values by input name, from texts like `sr=16000`, `k=[1,2]` and `mask=mask.npy`. Raises
    UsageError for other texts, and for files without an array."""
    found = _by_name("--value", texts, "NAME=VALUE", "sr=16000")
    return {name: _value(given, f"--value {name}={given}") for name, given in found.items()}


def given_numbers(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Numbers by input name, from texts like `x=58.8` and `x=[123.68,116.78,103.94]`. Raises
    UsageError for other texts."""
    example = "x=58.8 or 'x=[123.68,116.78,103.94]'"
    found = _by_name(option, texts, "NAME=X", example)
    try:
        return {name: json.loads(given) for name, given in found.items()}
    except (ValueError, RecursionError):
        given = next(iter(texts or ()))
        raise UsageError(f"{option} {given}: is not NAME=X; write for example {example}") from None


def layouts(texts: Sequence[str] | None) -> dict[str, str]:
    """Layouts by input name, from texts like `x=NHWC->NCHW`. Raises UsageError for other texts."""
    return _by_name("--layout", texts, "NAME=LAYOUT", "x=NCHW or 'x=NHWC->NCHW'")


def files_of_values(texts: Sequence[str] | None) -> list[Path]:
    """The files that texts for `given_values` name."""
    return [Path(text.partition("=")[2]) for text in texts or () if text.endswith(".npy")]


def _by_name(
    option: str, texts: Sequence[str] | None, form: str, example: str, value: str = ".+"
) -> dict[str, str]:
    """The values by name, from texts of a form like NAME=VALUE. UsageError for other texts, and for
    a name that is given twice."""
    found: dict[str, str] = {}
    for text in texts or ():
        match = re.fullmatch(rf"(.+?)=({value})", text, re.ASCII | re.DOTALL)
        if match is None:
            raise UsageError(f"{option} {text}: is not {form}; write for example {example}")
        if match[1] in found:
            raise UsageError(f'{option} {text}: "{match[1]}" is given twice')
        found[match[1]] = match[2]
    return found


def _value(given: str, option: str) -> Any:
    """The array of a `.npy` file, or the value of a JSON text."""
    if given.endswith(".npy"):
        import numpy as np

        try:
            with opened(Path(given)) as file:
                return np.load(file, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"{option}: is no array that can be read: {error}") from None
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise UsageError(
            f"{option}: is no number, list in JSON or .npy file; write for example sr=16000, "
            "'k=[1,2]' or mask=mask.npy"
        ) from None


def new_names(texts: Sequence[str] | None) -> dict[str, str]:
    """New names by old ones, from texts like `x=image`. Raises UsageError for other texts."""
    return _by_name("--rename", texts, "OLD=NEW", "x=image")


def output_ranks(texts: Sequence[str] | None) -> dict[str, int] | None:
    """Ranks by output name, from texts like `y=2`. Raises UsageError for other texts."""
    found = _by_name("--output-rank", texts, "NAME=RANK", "y=2", r"\d{1,3}")
    return {name: int(rank) for name, rank in found.items()} or None


def states(texts: Sequence[str] | None) -> dict[str, str]:
    """Outputs by input name, from texts like `past=present`. Raises UsageError for other texts."""
    return _by_name("--state", texts, "INPUT=OUTPUT", "past=present")


def split_names(texts: Sequence[str] | None) -> list[str]:
    """Names, from texts like `a,b`."""
    return [name for text in texts or () for name in text.split(",")]


def tolerance(texts: Sequence[str] | None, option: str) -> dict[str, float]:
    """A tolerance by the output's name, with "*" for the others, from texts like `1e-3` and
    `y=1e-2`. Raises UsageError for other texts."""
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


def parse_dimension(dim: str, option: str) -> Any:
    """A size, a symbol or an Interval, from texts like `3`, `h`, `?` and `2..8`. Raises UsageError
    for other texts, which names the `option`."""
    from bridge.neutral.types import Interval
    from bridge.passes.boundary import dimension

    given: Any = dim
    if dim in ("?", "-1"):
        given = None
    elif re.fullmatch(_SIZE, dim):
        given = int(dim)
    elif limits := re.fullmatch(_INTERVAL, dim):
        given = Interval(int(limits[1]), int(limits[2]) if limits[2] else None)
    try:
        return dimension(given)
    except UsageError:
        raise UsageError(
            f'{option}: "{dim}" is no dimension; it may be a size from 0 to 2**63-1, ? for any '
            "size, a range like 1..8, or a symbol (a word)"
        ) from None
