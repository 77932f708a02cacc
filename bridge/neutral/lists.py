"""The record, in a model's metadata, of what stands in the place of strings and maps.

IR has neither. A tensor of strings is a tensor of their places in a list, its vocabulary; a map is
a row of its values, for which a list holds the keys. The record keeps these lists by the name of
the input or output, for `bridge.pack`, `bridge.unpack` and the way back to ONNX.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from bridge.metadata import broken, read_record
from bridge.neutral.types import I64_MAX

VOCABULARIES = "boundary.strings"
"""The entry of `Model.metadata` for strings: lists of words."""

MAP_KEYS = "boundary.maps"
"""The entry of `Model.metadata` for maps: lists of their keys, words or integers."""

Item = str | int


@dataclass
class Lists:
    """Lists without repetition, by the names of a model's inputs and outputs."""

    inputs: dict[str, tuple[Item, ...]] = field(default_factory=dict)
    outputs: dict[str, tuple[Item, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.inputs or self.outputs)

    def dumps(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def loads(cls, text: str | None, what: str) -> Self:
        """From JSON, empty without any; InvalidModelError where it is not as Bridge writes it.
        `what` it holds is VOCABULARIES or MAP_KEYS."""
        if text is None:
            return cls()
        name = _CALLED[what]
        data = read_record(text, name)
        if not isinstance(data, dict):
            raise broken(name, "it has no inputs or no outputs")
        return cls(*(_read_side(data.get(side), what) for side in ("inputs", "outputs")))


_CALLED = {VOCABULARIES: "strings", MAP_KEYS: "maps"}


def _read_side(side: Any, what: str) -> dict[str, tuple[Item, ...]]:
    if not isinstance(side, dict):
        raise broken(_CALLED[what], "it has no inputs or no outputs")
    for port, items in side.items():
        if not _is_list(items, what):
            raise broken(_CALLED[what], f'what it says of "{port}" is not what Bridge writes')
    return {port: tuple(items) for port, items in side.items()}


def _is_list(items: Any, what: str) -> bool:
    """Whether it is a list of words, or of integers where these can be keys, none twice."""
    if not isinstance(items, list) or not items:
        return False
    tests: list[Callable[[Any], bool]] = [lambda item: isinstance(item, str)]
    if what == MAP_KEYS:
        tests.append(lambda item: type(item) is int and -I64_MAX - 1 <= item <= I64_MAX)
    return any(all(map(test, items)) for test in tests) and len(set(items)) == len(items)
