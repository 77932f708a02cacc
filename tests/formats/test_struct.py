"""Structs behave as dataclasses do."""

from __future__ import annotations

import copy
import pickle

import pytest

from bridge.struct import Struct, as_dict, changed, field, replace


class Point(Struct):
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)


class Place(Point):
    name: str = ""

    def __post_init__(self) -> None:
        if self.name == "nowhere":
            raise ValueError


class Mutable(Struct, frozen=False):
    x: int


class Single(Struct, eq=False):
    x: int


class Empty(Struct):
    pass


def test_fields_and_defaults() -> None:
    first, second = Point(1), Point(x=1, y=3)
    assert (first.x, first.y, first.tags) == (1, 2, [])
    assert first.tags is not Point(1).tags
    assert as_dict(second) == {"x": 1, "y": 3, "tags": []}
    assert changed(second) == {"x": 1, "y": 3, "tags": []}
    assert changed(Place(1, name="here")) == {"x": 1, "tags": [], "name": "here"}
    assert repr(second) == "Point(x=1, y=3, tags=[])"
    match second:
        case Point(x, y):
            assert (x, y) == (1, 3)


def test_equality_and_hashes() -> None:
    assert Point(1, 2) == Point(1) != Point(2) and Point(1) != Place(1) and Point(1) != 1
    assert Empty() == Empty() and hash(Empty()) == hash(Empty())
    assert replace(Point(1), x=5) == Point(5)
    assert len({Point(1, 2, ()), Point(1, 2, ())}) == 1  # type: ignore[arg-type]
    one = Single(1)
    assert one == one and Single(1) != Single(1) and len({Single(1), Single(1)}) == 2
    with pytest.raises(TypeError):
        hash(Mutable(1))


def test_what_does_not_change() -> None:
    point, mutable = Point(1), Mutable(1)
    mutable.x = 2
    assert mutable == Mutable(2)
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del point.x


def test_arguments_are_checked() -> None:
    for arguments, named in (((), {}), ((1, 2, [], 4), {}), ((1,), {"z": 1}), ((1,), {"x": 1})):
        with pytest.raises(TypeError):
            Point(*arguments, **named)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        Place(1, name="nowhere")


def test_copies() -> None:
    for struct in (Point(1, 3, ["a"]), Place(1, name="here"), Mutable(4), Empty()):
        assert copy.deepcopy(struct) == struct == pickle.loads(pickle.dumps(struct))
