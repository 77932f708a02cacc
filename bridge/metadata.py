"""Records: what Bridge writes down about a model, in JSON, in the model's own metadata.

An `Entry` says which record stands under which key. The types of a record's fields are its schema.
A file may have been changed since, or be somebody else's, so nothing is taken that does not fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from bridge.errors import InvalidModelError

DEEPEST = 20
"""Lists and objects within one another; Bridge's own records have four."""

LARGEST = (1 << 63) - 1
"""The largest integer of a record."""

_BRACKETS = r'(?s)[][{}]|"(?:[^"\\]|\\.)*"'
_NAMES = {bool: "true or false", float: "number", int: "integer", str: "text", NoneType: "null"}

T = TypeVar("T")


class Misfit(ValueError):
    """Raised for data that does not fit its type; `path` leads to it from the top."""

    def __init__(self, why: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"at {' / '.join(path)}: {why}" if path else why)
        self.why = why
        self.path = path


@dataclass(frozen=True)
class Fits:
    """A condition on the values of a type, for `Annotated`; `name` is what it is for a message."""

    test: Callable[[Any], bool]
    name: str


Size = Annotated[int, Fits(lambda number: number >= 0, "size")]
"""The size of a dimension."""


@dataclass(frozen=True)
class Entry(Generic[T]):
    """The place of a record in `Model.metadata`: its key, its type, and what a message calls it.

    A `hint` has no effect where it cannot be read, in whole or in part. `style` has the arguments
    of `json.dumps`: the bytes are those that older releases write.
    """

    key: str
    type: Any
    name: str
    hint: bool = False
    style: Mapping[str, Any] | None = None

    def read(self, metadata: Mapping[str, str]) -> T | None:
        """The record, None where there is none. InvalidModelError where it cannot be read."""
        if self.key not in metadata:
            return None
        try:
            record: T = from_json(self.type, _parsed(metadata[self.key]), self.hint)
            return record
        except ValueError as error:
            if self.hint:
                return None
            raise InvalidModelError(
                f"the model's record of its {self.name} cannot be read: {error}"
            ) from error

    def take(self, metadata: MutableMapping[str, str]) -> T | None:
        """The record, which leaves the metadata."""
        record = self.read(metadata)
        metadata.pop(self.key, None)
        return record

    def write(self, metadata: MutableMapping[str, str], record: T) -> None:
        """Puts a record into the metadata. A hint leaves out the fields that are empty."""
        style = {"separators": (",", ":")} if self.style is None else self.style
        metadata[self.key] = json.dumps(record, default=self._as_object, **style)

    def names_nothing(self, name: str) -> InvalidModelError:
        """The error for a name in the record that the model does not have."""
        return InvalidModelError(
            f'the model\'s record of its {self.name} names "{name}", which it does not have'
        )

    def _as_object(self, record: Any) -> dict[str, Any]:
        return {key: value for key, value in asdict(record).items() if value or not self.hint}


def from_json(type: Any, data: Any, partial: bool = False, path: tuple[str, ...] = ()) -> Any:
    """The value of a type that JSON `data` stands for. Raises Misfit where it is no such value;
    with `partial`, entries and fields that do not fit are left out."""
    if type in _NAMES:
        return _simple(type, data, path)
    read = _READERS.get(get_origin(type))
    if read is not None:
        return read(get_args(type), data, partial, path)
    if type is Any:
        return data
    return _with_fields(type, data, partial, path)


Path = tuple[str, ...]
Types = tuple[Any, ...]


def _simple(type: Any, data: Any, path: Path) -> Any:
    """A text, a number, true, false or null."""
    if data.__class__ is not type or (type is int and not -LARGEST - 1 <= data <= LARGEST):
        raise Misfit(f"{_shown(data)} is no {_NAMES[type]}", path)
    return data


def _with_conditions(types: Types, data: Any, partial: bool, path: Path) -> Any:
    """A value of the first type that fulfils the conditions behind it."""
    value = from_json(types[0], data, partial, path)
    for condition in types[1:]:
        if not condition.test(value):
            raise Misfit(f"{_shown(data)} is no {condition.name}", path)
    return value


def _one_of(values: Types, data: Any, partial: bool, path: Path) -> Any:
    """One of the values of a Literal."""
    if data not in values:
        raise Misfit(f"{_shown(data)} is none of {', '.join(map(str, values))}", path)
    return data


def _alternative(types: Types, data: Any, partial: bool, path: Path) -> Any:
    """A value of the first of these types that it fits."""
    found: list[Misfit] = []
    for type in types:
        try:
            return from_json(type, data, partial, path)
        except Misfit as misfit:
            found.append(misfit)
    raise max(found, key=lambda misfit: len(misfit.path))


def _items(types: Types, data: Any, partial: bool, path: Path) -> list[Any]:
    """A list, of one type."""
    if not isinstance(data, list):
        raise Misfit(f"{_shown(data)} is no list", path)
    return [from_json(types[0], x, partial, (*path, str(i))) for i, x in enumerate(data)]


def _entries(types: Types, data: Any, partial: bool, path: Path) -> dict[str, Any]:
    """An object whose values have one type."""
    _require_object(data, path)
    return dict(_fitting(dict.fromkeys(data, types[1]), data, partial, path))


def _with_fields(type: Any, data: Any, partial: bool, path: Path) -> Any:
    """An object of a dataclass or a TypedDict."""
    _require_object(data, path)
    types = get_type_hints(type, include_extras=True)
    unknown = sorted(data.keys() - types.keys())
    if unknown and not partial:
        raise Misfit(f'it has "{unknown[0]}", which Bridge does not write', path)
    known = {name: types[name] for name in types if name in data}
    found = dict(_fitting(known, data, partial, path))
    required = [field.name for field in (fields(type) if is_dataclass(type) else ())
                if field.default is MISSING and field.default_factory is MISSING]  # fmt: skip
    for name in required:
        if name not in found:
            raise Misfit(f"it has no {name}", path)
    return type(**found)


def _require_object(data: Any, path: Path) -> None:
    if not isinstance(data, dict):
        raise Misfit(f"{_shown(data)} is no object", path)


def _fitting(
    types: Mapping[str, Any], data: Mapping[str, Any], partial: bool, path: Path
) -> Iterator[tuple[str, Any]]:
    """The entries of an object, each of its own type."""
    for name, type in types.items():
        try:
            yield name, from_json(type, data[name], partial, (*path, name))
        except Misfit:
            if not partial:
                raise


_READERS: Mapping[Any, Callable[[Types, Any, bool, Path], Any]] = {
    Annotated: _with_conditions,
    Literal: _one_of,
    Union: _alternative,
    UnionType: _alternative,
    list: _items,
    tuple: lambda *found: tuple(_items(*found)),
    dict: _entries,
}
"""What reads a type that is made of others, by what `typing.get_origin` says of it."""


def _shown(data: Any) -> str:
    """The beginning of what stands in JSON."""
    text = json.dumps(data)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _parsed(text: str) -> Any:
    """The data of a JSON text that is not nested deep. ValueError where it is none."""
    depth = 0
    for found in re.finditer(_BRACKETS, text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > DEEPEST:
            raise ValueError("it is nested too deep")
    return json.loads(text)
