"""Records: Bridge's facts about a model, as JSON in the model's own metadata.

An `Entry` binds a record to a key. The types of a record's fields are its schema. A file may have
been changed since, or come from somebody else, so data that do not fit are never used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
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
from bridge.neutral.extras import Fits

DEEPEST = 20
"""Lists and objects within one another; Bridge's own records have four."""

LARGEST = (1 << 63) - 1
"""The largest integer of a record."""

_BRACKETS = r'(?s)[][{}]|"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z)'
_NAMES = {bool: "true or false", float: "number", int: "integer", str: "text", NoneType: "null"}

T = TypeVar("T")

Json = dict[str, Any]
"""An object of JSON."""


class Misfit(ValueError):
    """Raised for data that does not fit its type; `path` leads to it from the top."""

    def __init__(self, why: str, data: Any, path: tuple[str, ...] = ()) -> None:
        super().__init__(why, data, path)
        self.why, self.data, self.path = why, data, path

    def within(self, name: str) -> Misfit:
        """The same misfit, seen from the record that holds the data under a name."""
        return Misfit(self.why, self.data, (name, *self.path))

    def __str__(self) -> str:
        text = json.dumps(self.data)
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        where = f"at {' / '.join(self.path)}: " if self.path else ""
        return f"{where}{shown} {self.why}"


@dataclass(eq=False)
class Entry(Generic[T]):
    """The place of a record in `Model.metadata`: its key, its type, and its name in messages.

    A `hint` that cannot be read has no effect, in whole or in part. `style` has the arguments of
    `json.dumps`, so that the bytes are the same as in older releases.
    """

    key: str
    type: Any
    name: str
    hint: bool = False
    style: Mapping[str, Any] | None = None

    def read(self, metadata: Mapping[str, str]) -> T | None:
        """The record, None if there is none. InvalidModelError if it cannot be read."""
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
        """Puts a record into the metadata. A hint leaves out its empty fields."""
        style = {"separators": (",", ":")} if self.style is None else self.style
        metadata[self.key] = json.dumps(record, default=self._as_object, **style)

    def names_nothing(self, name: str) -> InvalidModelError:
        """The error for a name in the record that the model does not have."""
        return InvalidModelError(
            f'the model\'s record of its {self.name} names "{name}", which it does not have'
        )

    def _as_object(self, record: Any) -> dict[str, Any]:
        """The fields of a dataclass in a record; json then asks for the nested ones."""
        values = ((each.name, getattr(record, each.name)) for each in fields(record))
        return {name: value for name, value in values if value or not self.hint}


def from_json(type: Any, data: Any, partial: bool = False) -> Any:
    """The value of a type that JSON `data` stands for. Raises Misfit if it is no such value;
    with `partial`, entries and fields that do not fit are left out."""
    return _reader(type)(data, partial)


JsonReader = Callable[[Any, bool], Any]
"""Makes a value of data; the second argument is `partial`."""


@cache
def _reader(type: Any) -> JsonReader:
    """The reader of a type, made once."""
    if type in _NAMES:
        return _simple(type)
    if type is Any:
        return lambda data, partial: data
    make = _MADE_OF.get(get_origin(type))
    return _object(type) if make is None else make(*get_args(type))


def _simple(type: Any) -> JsonReader:
    """A text, a number, true, false or null."""

    def read(data: Any, partial: bool) -> Any:
        if data.__class__ is not type or (type is int and not -LARGEST - 1 <= data <= LARGEST):
            raise Misfit(f"is no {_NAMES[type]}", data)
        return data

    return read


def _fulfilling(type: Any, condition: Fits) -> JsonReader:
    """A value of a type that fulfils a condition."""
    read_value = _reader(type)

    def read(data: Any, partial: bool) -> Any:
        value = read_value(data, partial)
        if not condition.test(value):
            raise Misfit(f"is no {condition.name}", data)
        return value

    return read


def _one_of(*values: Any) -> JsonReader:
    """One of the texts of a Literal."""
    return _fulfilling(str, Fits(values.__contains__, f"word of {', '.join(values)}"))


def _alternative(*types: Any) -> JsonReader:
    """A value of the first of these types that it fits."""

    readers = [_reader(type) for type in types]

    def read(data: Any, partial: bool) -> Any:
        found: list[Misfit] = []
        for reader in readers:
            try:
                return reader(data, partial)
            except Misfit as misfit:
                found.append(misfit)
        raise max(found, key=lambda misfit: len(misfit.path))

    return read


def _items(type: Any, *_: Any) -> JsonReader:
    """A list, of one type."""

    read_item = _reader(type)

    def read(data: Any, partial: bool) -> list[Any]:
        if not isinstance(data, list):
            raise Misfit("is no list", data)
        return [_part(read_item, str(place), item, partial) for place, item in enumerate(data)]

    return read


def _tuple(type: Any, *_: Any) -> JsonReader:
    """A list that becomes a tuple."""
    read = _items(type)
    return lambda data, partial: tuple(read(data, partial))


def _entries(_: Any, type: Any) -> JsonReader:
    """An object whose values have one type."""

    read = _reader(type)
    return lambda data, partial: _fitting(dict.fromkeys(_an_object(data), read), data, partial)


def _object(type: Any) -> JsonReader:
    """An object of a dataclass or a TypedDict."""
    readers = {
        name: _reader(own) for name, own in get_type_hints(type, include_extras=True).items()
    }
    required = [field.name for field in (fields(type) if is_dataclass(type) else ())
                if field.default is MISSING and field.default_factory is MISSING]  # fmt: skip

    def read(data: Any, partial: bool) -> Any:
        unknown = sorted(_an_object(data).keys() - readers.keys())
        if unknown and not partial:
            raise Misfit(f'has "{unknown[0]}", which Bridge does not write', data)
        known = {name: own for name, own in readers.items() if name in data}
        found = _fitting(known, data, partial)
        for name in required:
            if name not in found:
                raise Misfit(f"has no {name}", data)
        return type(**found)

    return read


def _an_object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Misfit("is no object", data)
    return data


def _fitting(readers: Mapping[str, JsonReader], data: Any, partial: bool) -> dict[str, Any]:
    """The entries of an object, each by its own reader."""
    found = {}
    for name, read in readers.items():
        try:
            found[name] = _part(read, name, data[name], partial)
        except Misfit:
            if not partial:
                raise
    return found


def _part(read: JsonReader, name: str, data: Any, partial: bool) -> Any:
    """The value under a name; a Misfit names it."""
    try:
        return read(data, partial)
    except Misfit as misfit:
        raise misfit.within(name) from None


_MADE_OF: Mapping[Any, Callable[..., JsonReader]] = {
    Annotated: _fulfilling,
    Literal: _one_of,
    Union: _alternative,
    UnionType: _alternative,
    list: _items,
    tuple: _tuple,
    dict: _entries,
}
"""The readers of composed types, by their `typing.get_origin`."""


def _parsed(text: str) -> Any:
    """The data of a JSON text of limited depth. ValueError if there is none."""
    depth = 0
    for found in re.finditer(_BRACKETS, text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > DEEPEST:
            raise ValueError("it is nested too deep")
    return json.loads(text)
