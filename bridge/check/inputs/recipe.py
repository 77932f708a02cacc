"""What inputs are made from, and an input that ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bridge.check.engines.protocol import is_empty as is_empty
from bridge.neutral.types import Interval
from bridge.options import Ranges

if TYPE_CHECKING:
    from bridge.check.inputs.own import InputSet
    from bridge.check.surgery.sites import Branch

OWN_NAMES = "bridge."
"""The start of the names of inputs that a check adds."""

Numbers = Literal["usual", "ends", "special", "marked", "filled"]
"""Which numbers are drawn: small ones, the ends of integer types too, or NaN and -0.0 too. Marks
are numbers that a model may tell from others (`uses`): some elements have them, or all have one."""

_EXTREME = {"f": 1e4, "i": 2.0**24, "u": 2.0**24}
"""The magnitude beyond which a number that the search chose is extreme, by the kind of its type.
Engines round large numbers unlike, overflow at other places, and hold 64-bit integers in 32."""


@dataclass(frozen=True)
class Recipe:
    """A seed that inputs are drawn from, and choices that replace drawn sizes and numbers.

    `sizes` has dimensions by symbol, or by `input.axis` if a dimension has no symbol. Each is a
    size, or a range to draw the size from. `fills` are numbers that fill a whole input, `scales`
    are factors for drawn numbers, `ranges` are limits for drawn numbers. `values` are inputs that
    are not drawn. `own` are inputs that a user gave; fills and scales may change them. `call` is
    the number of a call in a row, 0 for other inputs. Each `turn` has other marks. `large` is the
    least size, and trip count, of a large input. `given` are the inputs whose numbers a user chose.
    """

    seed: int = 0
    sizes: Mapping[str, int | Interval] = field(default_factory=dict)
    fills: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    own: InputSet | None = None
    call: int = 0
    large: int = 0
    numbers: Numbers = "usual"
    turn: int = 0
    given: frozenset[str] = frozenset()

    def scaled(self, names: Sequence[str], factor: float, more: int = 0) -> Recipe:
        """The recipe with inputs times a factor, and with a later seed."""
        scales = {**self.scales, **dict.fromkeys(names, factor)}
        return replace(self, seed=self.seed + more, scales=scales)

    @property
    def chosen(self) -> frozenset[str]:
        """The inputs whose numbers it gives or limits."""
        return frozenset({*self.fills, *self.ranges})

    @property
    def is_own(self) -> bool:
        """Whether a user gave its inputs."""
        return self.own is not None and not (self.fills or self.scales)

    def __str__(self) -> str:
        """The recipe as text for people: `seed 3, N = 512, mode filled with 7`."""
        parts = [f"seed {self.seed}" if self.own is None else self.own.where]
        if self.call:
            return f"{parts[0]}, call {self.call} in a row"
        parts += ["large"] * bool(self.large)
        parts += ["ends of types"] * (self.numbers == "ends")
        parts += ["NaN or -0.0"] * (self.numbers == "special")
        if self.numbers in ("marked", "filled"):
            parts += [f"limits of the model, {self.numbers} {self.turn}"]
        parts += [f"{key} = {size}" for key, size in self.sizes.items()]
        parts += [
            f"{name} filled with {number:g}"
            for name, number in self.fills.items()
            if not name.startswith(OWN_NAMES)
        ]
        parts += [f"{name} times {factor:g}" for name, factor in self.scales.items()]
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Case:
    """An input that the model takes, with its recipe, the outputs that the search saw, and the
    branches that it takes."""

    recipe: Recipe
    feeds: dict[str, Any]
    outputs: dict[str, Any]
    taken: frozenset[Branch] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether a tensor has no elements."""
        return is_empty(self.feeds)

    @property
    def is_zeros(self) -> bool:
        """Whether all numbers are 0."""
        return not any(np.any(value) for value in self.feeds.values() if value is not None)

    @property
    def is_extreme(self) -> bool:
        """Whether the search chose a number that engines need not agree about."""
        changed = {*self.recipe.fills, *self.recipe.scales} - self.recipe.given
        return any(_is_far(self.feeds[name]) for name in changed if name in self.feeds)


def _is_far(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_far, value))
    most = _EXTREME.get(value.dtype.kind) if isinstance(value, np.ndarray) else None
    return most is not None and bool(np.any(np.abs(value.astype(np.float64)) > most))
