"""Families of single-operator programs: axes as data, and a function that makes a call from a
row."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


class Draw:
    """Numbers for the inputs of a case; the name of the case is the seed."""

    def __init__(self, name: str) -> None:
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def floats(self, *shape: int) -> np.ndarray:
        """Normally distributed f32."""
        return self.rng.standard_normal(shape).astype(np.float32)

    def of(self, type: str, *shape: int, scale: float = 5) -> np.ndarray:
        """Numbers of a type, not negative if the type is unsigned."""
        values = self.rng.standard_normal(shape) * scale
        return (np.abs(values) if type[0] in "ub" else values).astype(type)

    def places(self, low: int, high: int, *shape: int) -> np.ndarray:
        """Indices of 64 bits."""
        return self.rng.integers(low, high, shape)

    def list(self, *shape: int) -> list[float]:
        """Numbers for an attribute."""
        return self.floats(*shape).reshape(-1).tolist()


@dataclass(frozen=True)
class Call:
    """An operator on its inputs. `types` are the types of the outputs if inference has none."""

    operator: str
    version: int
    inputs: tuple[np.ndarray | None, ...]
    attributes: Mapping[str, Any]
    outputs: int = 1
    types: tuple[int, ...] = ()


def call(
    operator: str,
    version: int,
    *inputs: Any,
    outputs: int = 1,
    types: tuple[int, ...] = (),
    **attributes: Any,
) -> Call:
    """A call without the attributes whose value is None."""
    given = tuple(None if value is None else np.asarray(value) for value in inputs)
    kept = {name: value for name, value in attributes.items() if value is not None}
    return Call(operator, version, given, kept, outputs, types)


Axes = Mapping[str, Sequence[Any]]
Row = Mapping[str, str]
Make = Callable[..., Call | None]


@dataclass(frozen=True)
class Family:
    """Programs of one kind. `make` returns None if levels exclude each other. The axis `constants`
    names positions of inputs, as in "12"; `shapes` says whether inputs are open."""

    format: str
    name: str
    axes: Mapping[str, Mapping[str, Any]]
    make: Make

    def call(self, row: Row) -> Call | None:
        """The call of a row of levels."""
        levels = {name: self.axes[name][level] for name, level in row.items()}
        for name in ("constants", "shapes"):
            levels.pop(name)
        return self.make(Draw(self.named(row)), **levels)

    def exists(self, row: Row) -> bool:
        """Whether the levels of a row go together."""
        return self.call(row) is not None

    def named(self, row: Row) -> str:
        """The name of the case of a row."""
        return f"{self.name}: " + " ".join(f"{name}={level}" for name, level in row.items())


@dataclass(frozen=True)
class Case:
    """A program: a row of a family. It goes to another process as the family's name and the row."""

    family: str
    row: Row

    @property
    def name(self) -> str:
        """The name, as a run prints it and accepts it."""
        return FAMILIES[self.family].named(self.row)


FAMILIES: dict[str, Family] = {}


def family(format: str, constants: Sequence[str] = ("",), **axes: Sequence[Any]) -> Any:
    """Registers the families of a function under its name."""

    def registered(make: Make) -> Make:
        every = {**axes, "constants": constants, "shapes": ("static", "open")}
        levels = {name: {str(value): value for value in values} for name, values in every.items()}
        name = f"{format} {make.__name__}"
        FAMILIES[name] = Family(format, name, levels, make)
        return make

    return registered
