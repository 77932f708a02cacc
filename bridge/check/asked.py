"""The options of a check, read and held to what they may be."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bridge.check.diagnosis.reduce import files_of as files_of_part
from bridge.check.inputs import Recipe
from bridge.check.inputs.own import (
    GivenInputs,
    files_of as files_of_inputs,
    places_of,
    require_free,
)
from bridge.check.outputs import ATOL, RTOL
from bridge.check.pair import Pair
from bridge.errors import UsageError
from bridge.files.outputs import require_outputs
from bridge.library.api import Source
from bridge.limits import Limits, read_limits
from bridge.neutral.graph import Model
from bridge.neutral.types import Interval
from bridge.options import CheckOptions, ConvertOptions, OwnInputs, Tolerance, require_values
from bridge.options.option import declared
from bridge.options.suggestions import unknown
from bridge.passes.boundary import dimension


@dataclass(frozen=True)
class Asked:
    """The options of one check.

    `conversion` are the options of the conversions, `recipe` says what inputs are drawn from. `own`
    are the user's inputs, at these `places`. `tolerances` are the relative and the absolute one by
    output, with "*" for the others. `small` is the file for the smallest part that differs.
    """

    conversion: ConvertOptions
    weights: Path | None
    limits: Limits
    tell: Callable[[str], None]
    recipe: Recipe
    samples: int
    budget: int
    own: OwnInputs | None
    places: list[GivenInputs]
    tolerances: dict[str, tuple[float, float]]
    seconds: float
    quick: bool
    save_inputs: Path | None
    small: Path | None

    @classmethod
    def of(cls, options: CheckOptions) -> Asked:
        """The options that a user gave. Raises UsageError for those that make no sense."""
        asked: dict[str, Any] = {
            name: options.get(name, option.default)
            for name, option in declared(CheckOptions)
            if name not in ConvertOptions.__annotations__
        }
        conversion = cast(ConvertOptions, {k: v for k, v in options.items() if k not in asked})
        tolerances = _tolerances(asked["rtol"], asked["atol"])
        places = places_of(asked["inputs"])
        require_values(CheckOptions, asked)
        if not (places or asked["samples"]):
            raise UsageError("`samples` is 0; it must be 1 or more")
        save_inputs, small = (
            None if asked[name] is None else Path(asked[name]) for name in ("save_inputs", "reduce")
        )
        if save_inputs is not None:
            require_free(save_inputs)
        fixed = {name: _size(name, size) for name, size in (asked["sizes"] or {}).items()}
        weights = conversion.pop("weights", None)
        return cls(
            conversion,
            None if weights is None else Path(weights),
            read_limits(conversion.pop("limits", None)),
            conversion.pop("progress", None) or (lambda step: None),
            Recipe(
                asked["seed"], fixed, dict(asked["fills"] or {}), ranges=dict(asked["ranges"] or {})
            ),
            min(asked["samples"], 2) if asked["quick"] else asked["samples"],
            asked["budget"], asked["inputs"], places, tolerances, asked["timeout"],
            asked["quick"], save_inputs, small,
        )  # fmt: skip

    def require_small(self, pair: Pair, source: Source, against: Source | None) -> None:
        """Raises UsageError if the file for the smallest part cannot be written. The sources are as
        the user gave them."""
        small, suffix = self.small, pair.source.suffix
        if small is None:
            return
        if small.suffix.lower() != suffix.lower():
            raise UsageError(
                f"{small}: is for a part of {pair.source.name}; let it end in {suffix}"
            )
        read = [file for one in (source, against) if isinstance(one, Model) for file in one.files]
        read += [] if self.weights is None else [str(self.weights)]
        require_outputs(
            files_of_part(small, None if pair.against is None else pair.against.suffix.lower()),
            [Path(path) for path in (source, against) if isinstance(path, str | os.PathLike)],
            [*map(Path, read), *files_of_inputs(self.own)],
            self.conversion.get("force", False),
        )

    def require_outputs(self, names: list[str]) -> None:
        """Raises UsageError for a tolerance whose name is none of these outputs."""
        for name in self.tolerances.keys() - {"*"}:
            if name not in names:
                raise UsageError(unknown("output", name, names))


def _tolerances(rtol: Tolerance | None, atol: Tolerance | None) -> dict[str, tuple[float, float]]:
    """The relative and the absolute tolerance by the output's name, with "*" for the others."""
    relative = _by_output("rtol", rtol, RTOL)
    absolute = _by_output("atol", atol, ATOL)
    return {
        name: (relative.get(name, relative["*"]), absolute.get(name, absolute["*"]))
        for name in sorted({*relative, *absolute})
    }


def _by_output(name: str, given: Tolerance | None, usual: float) -> dict[str, float]:
    """A tolerance by the output's name, with "*" for the others."""
    given = usual if given is None else given
    found = {"*": usual, **(given if isinstance(given, Mapping) else {"*": given})}
    for number in found.values():
        if not (math.isfinite(number) and number >= 0):
            raise UsageError(f"{name} is {number}; a tolerance is a number from 0 on")
    return found


def _size(name: str, given: Any) -> int | Interval:
    size = dimension(given)
    if isinstance(size, str):
        raise UsageError(f'the size of "{name}" must be a number or a range, not "{size}"')
    return size
