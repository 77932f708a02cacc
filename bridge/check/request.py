"""What a check is asked for: its options, read and held to what they may be."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bridge.check.compare import ATOL, RTOL, Tolerances
from bridge.check.diagnosis.reduce import files_of as files_of_part
from bridge.check.inputs import Recipe
from bridge.check.inputs.own import (
    GivenInputs,
    files_of as files_of_inputs,
    places_of,
    require_free,
)
from bridge.errors import UsageError
from bridge.library.api import Source
from bridge.library.outputs import require_outputs
from bridge.limits import Limits, read_limits
from bridge.neutral.graph import Model
from bridge.neutral.types import Interval
from bridge.options import CheckOptions, ConvertOptions, OwnInputs, Tolerance, require_values
from bridge.options.option import declared
from bridge.passes.inputs import dimension
from bridge.suggestions import unknown


@dataclass(frozen=True)
class Request:
    """The options of one check.

    `conversion` are the options of the conversions, `recipe` says what inputs are drawn from. `own`
    are the user's inputs, at these `places`. `small` is the file for the smallest part that
    differs."""

    source: Source
    against: Source | None
    conversion: ConvertOptions
    weights: Path | None
    limits: Limits
    tell: Callable[[str], None]
    recipe: Recipe
    samples: int
    budget: int
    own: OwnInputs | None
    places: list[GivenInputs]
    tolerances: Tolerances
    seconds: float
    quick: bool
    save_inputs: Path | None
    small: Path | None

    @classmethod
    def of(cls, source: Source, against: Source | None, options: CheckOptions) -> Request:
        """The options that a user gave. Raises UsageError for those that make no sense."""
        given: dict[str, Any] = {
            name: options.get(name, option.default)
            for name, option in declared(CheckOptions)
            if name not in ConvertOptions.__annotations__
        }
        conversion = cast(ConvertOptions, {k: v for k, v in options.items() if k not in given})
        tolerances = _tolerances(given["rtol"], given["atol"])
        places = places_of(given["inputs"])
        require_values(CheckOptions, given)
        if not (places or given["samples"]):
            raise UsageError("`samples` is 0; it must be 1 or more")
        save_inputs, small = (
            None if given[name] is None else Path(given[name]) for name in ("save_inputs", "reduce")
        )
        if save_inputs is not None:
            require_free(save_inputs)
        sizes = {name: _size(name, size) for name, size in (given["sizes"] or {}).items()}
        fills, ranges = dict(given["fills"] or {}), dict(given["ranges"] or {})
        weights = conversion.pop("weights", None)
        return cls(
            source=source,
            against=against,
            conversion=conversion,
            weights=None if weights is None else Path(weights),
            limits=read_limits(conversion.pop("limits", None)),
            tell=conversion.pop("progress", None) or (lambda step: None),
            recipe=Recipe(given["seed"], sizes, fills, ranges=ranges),
            samples=min(given["samples"], 2) if given["quick"] else given["samples"],
            budget=given["budget"],
            own=given["inputs"],
            places=places,
            tolerances=tolerances,
            seconds=given["timeout"],
            quick=given["quick"],
            save_inputs=save_inputs,
            small=small,
        )

    def require_small(self, source: Path) -> None:
        """Raises UsageError if the file for the smallest part cannot be written."""
        if self.small is None:
            return
        if self.against is not None:
            raise UsageError(
                "`reduce` is for a model that the check converts; check one file, without the other"
            )
        if self.small.suffix.lower() != source.suffix.lower():
            raise UsageError(
                f"{self.small}: is for a part of {source.name}; let it end in {source.suffix}"
            )
        read = [*self.source.files] if isinstance(self.source, Model) else []
        read += [] if self.weights is None else [str(self.weights)]
        require_outputs(
            files_of_part(self.small),
            [Path(self.source)] if isinstance(self.source, str | os.PathLike) else [],
            [*map(Path, read), *files_of_inputs(self.own)],
            self.conversion.get("force", False),
        )

    def require_outputs(self, names: list[str]) -> None:
        """Raises UsageError for a tolerance whose name is none of these outputs."""
        for name in self.tolerances.by_output:
            if name not in names:
                raise UsageError(unknown("output", name, names))


def _tolerances(rtol: Tolerance | None, atol: Tolerance | None) -> Tolerances:
    relative = _by_output("rtol", rtol, RTOL)
    absolute = _by_output("atol", atol, ATOL)
    names = sorted({*relative, *absolute} - {"*"})
    decided = {
        name
        for given in (rtol, atol)
        if given is not None
        for name in (given if isinstance(given, Mapping) else ("*",))
    }
    return Tolerances(
        relative["*"],
        absolute["*"],
        {n: (relative.get(n, relative["*"]), absolute.get(n, absolute["*"])) for n in names},
        frozenset(decided),
    )


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
