"""Records in a model's metadata are read by the types of their fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

import bridge
from bridge.neutral.extras import Fits, Size
from bridge.records.entry import LARGEST, Entry, Misfit, from_json


@dataclass
class Part:
    kind: Literal["a", "b"]
    sizes: list[Size | str | None]
    marks: tuple[int, ...] = ()


@dataclass
class Whole:
    parts: dict[str, Part] = field(default_factory=dict)
    even: Annotated[int, Fits(lambda number: number % 2 == 0, "even number")] = 0
    on: bool = False


READ: dict[str, tuple[Any, Any, Any]] = {
    "a record in a record": (
        Whole,
        {"parts": {"x": {"kind": "a", "sizes": [1, "n", None], "marks": [-1]}}, "on": True},
        Whole({"x": Part("a", [1, "n", None], (-1,))}, 0, True),
    ),
    "defaults": (Whole, {}, Whole()),
    "anything": (dict[str, Any], {"x": [{}]}, {"x": [{}]}),
    "the largest integer": (int, LARGEST, LARGEST),
}


@pytest.mark.parametrize(("type", "data", "value"), READ.values(), ids=READ)
def test_what_fits(type: Any, data: Any, value: Any) -> None:
    assert from_json(type, data) == value


WRONG: dict[str, tuple[Any, Any, str]] = {
    "no object": (Whole, [], "^.. is no object"),
    "an unknown field": (Whole, {"other": 1}, '"other"'),
    "a field less": (dict[str, Part], {"x": {"kind": "a"}}, "at x: .* has no sizes"),
    "another word": (Part, {"kind": "c", "sizes": []}, 'at kind: "c" is no word of a, b'),
    "a negative size": (Part, {"kind": "a", "sizes": ["n", -1]}, "at sizes / 1: -1 is no size"),
    "a condition": (Whole, {"even": 3}, "at even: 3 is no even number"),
    "true for a number": (Whole, {"even": True}, "at even: true is no integer"),
    "a number for true": (Whole, {"on": 1}, "at on: 1 is no true or false"),
    "an integer of 64 bits and more": (int, LARGEST + 1, "is no integer"),
    "null": (str, None, "null is no text"),
}


@pytest.mark.parametrize(("type", "data", "says"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit(type: Any, data: Any, says: str) -> None:
    with pytest.raises(Misfit, match=says):
        from_json(type, data)


def test_a_hint_keeps_what_fits() -> None:
    entry: Entry[Whole] = Entry("whole", Whole, "parts", hint=True)
    good, bad = '{"kind": "a", "sizes": []}', '{"kind": "a"}'
    text = f'{{"parts": {{"x": {good}, "y": {bad}}}, "even": 3, "on": true, "other": 1}}'
    assert entry.read({"whole": text}) == Whole({"x": Part("a", [])}, 0, True)
    assert entry.read({"whole": "no JSON"}) is None
    assert entry.read({}) is None


def test_an_entry_is_written_as_it_is_read() -> None:
    entry: Entry[Whole] = Entry("whole", Whole, "parts")
    record, metadata = Whole({"x": Part("b", [2, "n"], (1,))}, 4), {"other": "kept"}
    entry.write(metadata, record)
    assert entry.take(metadata) == record
    assert metadata == {"other": "kept"}


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"on": 1}'])
def test_what_cannot_be_read_is_said(text: str) -> None:
    entry: Entry[Whole] = Entry("whole", Whole, "parts")
    with pytest.raises(bridge.InvalidModelError, match="record of its parts cannot be read"):
        entry.read({"whole": text})
