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

Numbers = Literal["usual", "ends", "special", "marked", "halves"]
"""Which numbers are drawn: small ones, the ends of integer types too, NaN and -0.0 too, numbers
that a file may tell from others (`uses`), or halves, which no engine rounds."""

_EXTREME = {"f": 1e4, "i": 2.0**24, "u": 2.0**24}
"""The magnitude beyond which a number that the search chose is extreme, by the kind of its type.
Engines round large numbers unlike, overflow at other places, and hold 64-bit integers in 32."""


@dataclass(frozen=True)
class Recipe:
    """A seed that inputs are drawn from, and choices that replace drawn sizes and numbers.

    `sizes` has dimensions by symbol, or by `input.axis` if a dimension has no symbol. Each is a
    size, or a range to draw the size from. `fills` are numbers that fill a whole input, `scales`
    are factors for drawn numbers, `spots` are single elements, by input and place; `ranges` are
    limits for drawn numbers. `values` are inputs that are not drawn. `own` are inputs that a user
    gave; fills, scales and spots may change them. `call` is the number of a call in a row, 0 for
    other inputs. Each `turn` has other marks. `large` is the least size, and trip count, of a large
    input. `given` are the inputs whose numbers a user chose.
    """

    seed: int = 0
    sizes: Mapping[str, int | Interval] = field(default_factory=dict)
    fills: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    spots: Mapping[tuple[str, int], float] = field(default_factory=dict)
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
        return self.own is not None and not (self.fills or self.scales or self.spots)

    def __str__(self) -> str:
        """The recipe as text for people: `seed 3, N = 512, mode filled with 7`."""
        parts = [f"seed {self.seed}" if self.own is None else self.own.where]
        if self.call:
            return f"{parts[0]}, call {self.call} in a row"
        parts += ["large"] * bool(self.large)
        parts += ["ends of types"] * (self.numbers == "ends")
        parts += ["NaN or -0.0"] * (self.numbers == "special")
        parts += [f"numbers near limits of the model, {self.turn}"] * (self.numbers == "marked")
        parts += ["halves"] * (self.numbers == "halves")
        parts += [f"{key} = {size}" for key, size in self.sizes.items()]
        parts += [
            f"{name} filled with {number:g}"
            for name, number in self.fills.items()
            if not name.startswith(OWN_NAMES)
        ]
        parts += [f"{name} times {factor:g}" for name, factor in self.scales.items()]
        parts += [f"{name}[{place}] = {number:g}" for (name, place), number in self.spots.items()]
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Case:
    """An input that the model takes, with its recipe, the outputs that the search saw, and the
    branches that it takes, and how far it is from each situation."""

    recipe: Recipe
    feeds: dict[str, Any]
    outputs: dict[str, Any]
    taken: frozenset[Branch] = frozenset()
    far: Sequence[float] = ()

    @property
    def is_empty(self) -> bool:
        """Whether a tensor has no elements."""
        return is_empty(self.feeds)

    @property
    def elements(self) -> int:
        """How many elements its tensors have."""
        return sum(one.size for one in self.feeds.values() if isinstance(one, np.ndarray))

    @property
    def is_finite(self) -> bool:
        """Whether all numbers that the model gives are finite. Engines overflow at other places."""
        arrays = (one for one in self.outputs.values() if isinstance(one, np.ndarray))
        floats = (one.astype(np.float64) for one in arrays if one.dtype.kind in "fV")
        with np.errstate(all="ignore"):
            return all(bool(np.isfinite(one).all()) for one in floats)

    @property
    def is_on_grid(self) -> bool:
        """Whether all floats are small multiples of 1/64, of which sums are not rounded."""
        arrays = (one for one in self.feeds.values() if isinstance(one, np.ndarray))
        floats = (one.astype(np.float64) * 64 for one in arrays if one.dtype.kind in "fV")
        return all(bool(((one == np.rint(one)) & (abs(one) < 2**18)).all()) for one in floats)

    @property
    def is_zeros(self) -> bool:
        """Whether all numbers are 0: they show few things as they would be."""
        return not any(np.any(value) for value in self.feeds.values() if value is not None)

    @property
    def is_extreme(self) -> bool:
        """Whether the search chose a number that engines need not agree about."""
        spots = (name for name, _ in self.recipe.spots)
        changed = {*self.recipe.fills, *self.recipe.scales, *spots} - self.recipe.given
        return any(_is_far(self.feeds[name]) for name in changed if name in self.feeds)


def _is_far(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_far, value))
    most = _EXTREME.get(value.dtype.kind) if isinstance(value, np.ndarray) else None
    return most is not None and bool(np.any(np.abs(value.astype(np.float64)) > most))
