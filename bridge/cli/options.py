"""Options that several commands share, and how their values are written."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.errors import UsageError
from bridge.files import opened
from bridge.options.option import FILES, MANY, OUTPUT


def option(panel: str | None, help: str, *flags: str, form: str | None = None, **more: Any) -> Any:
    """An option of a command as Typer declares it: `form` is what its value looks like."""
    return typer.Option(*flags, metavar=form, rich_help_panel=panel, help=help, **more)


AsJson = Annotated[bool, option(OUTPUT, "Print one JSON document, for scripts.", "--json")]
Quiet = Annotated[bool, option(OUTPUT, "Print errors alone.", "--quiet", "-q")]
Verbose = Annotated[bool, option(OUTPUT, "Print all details.", "--verbose", "-v")]
Force = Annotated[bool, option(FILES, "Overwrite files of another kind, too.", "--force")]
Debug = Annotated[bool, option(FILES, "Show the traceback of an error.", "--debug")]
Jobs = Annotated[int | None, option(MANY, "Models to work on at once.", form="N", min=1)]
Junit = Annotated[
    Path | None, option(MANY, "Write a report for CI, in JUnit's format.", form="FILE.xml")
]
Shard = Annotated[
    str | None, option(MANY, "Take one of N parts of the models, such as 3/8.", form="I/N")
]
CacheFolder = Annotated[
    Path | None, option(MANY, "Keep verdicts here, for models that do not change.", form="DIR")
]

_SHAPE = r"(?s)(?P<name>.+?)=?\[(?P<dims>[^][]*)\]"
# More digits than a size can have are left to be refused.
_SIZE = r"\d{1,19}"
_INTERVAL = rf"({_SIZE})\.\.({_SIZE})?"
_MEANS = "x=58.8 or 'x=[123.68,116.78,103.94]'"
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


@dataclass(frozen=True)
class ByName:
    """Reads values by name from texts of a `form` like NAME=VALUE: each `value` matches, and is
    read from its text and the whole option. UsageError for other texts."""

    option: str
    form: str
    example: str
    value: str = ".+"
    read: Callable[[str, str], Any] = lambda text, option: text

    def __call__(self, texts: Sequence[str] | None) -> dict[str, Any]:
        """The values by name; a name may be given once."""
        found: dict[str, Any] = {}
        for text in texts or ():
            where = f"{self.option} {text}"
            match = re.fullmatch(rf"(.+?)=({self.value})", text, re.ASCII | re.DOTALL)
            if match is None:
                raise UsageError(f"{where}: is not {self.form}; write for example {self.example}")
            if match[1] in found:
                raise UsageError(f'{where}: "{match[1]}" is given twice')
            found[match[1]] = self.read(match[2], where)
        return found


def files_of_values(texts: Sequence[str] | None) -> list[Path]:
    """The files that texts for `given_values` name."""
    return [Path(text.partition("=")[2]) for text in texts or () if text.endswith(".npy")]


def _number(text: str, option: str) -> int:
    return int(text)


def _range(text: str, option: str) -> tuple[float, float]:
    low, _, high = text.partition("..")
    return float(low), float(high)


def _numbers(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{option}: is not NAME=X; write for example {_MEANS}") from None


def _value(given: str, option: str) -> Any:
    """The array of a `.npy` file, or the value of a JSON text."""
    if given.endswith(".npy"):
        import numpy as np

        try:
            with opened(Path(given)) as file:
                return np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise UsageError(f"{option}: is no array that can be read: {error}") from None
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise UsageError(
            f"{option}: is no number, list in JSON or .npy file; write for example sr=16000, "
            "'k=[1,2]' or mask=mask.npy"
        ) from None


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
    from bridge.passes.inputs import dimension

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


states = ByName("--state", "INPUT=OUTPUT", "past=present")

_LIMITS = rf"(?i:{_NUMBER})\.\.(?i:{_NUMBER})"

READERS: Mapping[str, Callable[[Sequence[str] | None], Any]] = {
    "atol": partial(tolerance, option="--atol"),
    "input_shapes": input_shapes,
    "input_types": ByName("--input-type", "NAME=TYPE", "x=f32", r"\w+"),
    "layout": ByName("--layout", "NAME=LAYOUT", "x=NCHW or 'x=NHWC->NCHW'"),
    "limits": ByName("--limit", "NAME=N", "nodes=1000000", _SIZE, _number),
    "mean": ByName("--mean", "NAME=X", _MEANS, read=_numbers),
    "output_ranks": ByName("--output-rank", "NAME=RANK", "y=2", r"\d{1,3}", _number),
    "outputs": split_names,
    "reverse_channels": split_names,
    "ranges": ByName("--range", "NAME=LOW..HIGH", "x=0..1", _LIMITS, _range),
    "rename": ByName("--rename", "OLD=NEW", "x=image"),
    "rtol": partial(tolerance, option="--rtol"),
    "scale": ByName("--scale", "NAME=X", _MEANS, read=_numbers),
    "sizes": ByName("--size", "DIM=N", "batch=2 or x.0=2", r"\d.*", parse_dimension),
    "values": ByName("--value", "NAME=VALUE", "sr=16000", read=_value),
}
"""The functions that read the texts of an option, by its keyword."""
