"""The records, in a model's metadata, of variables of IR and the pairs that they are in ONNX."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.metadata import Entry


@dataclass(frozen=True)
class StatePair:
    """A variable, and the names of the input and the output that hold it before and after a
    call."""

    variable: str
    input: str
    output: str


@dataclass(frozen=True)
class SymbolicPair(StatePair):
    """A pair with the symbols of its dimensions before and after a call, None for those that have
    none."""

    before: list[str | None]
    after: list[str | None]


@dataclass(frozen=True)
class ToldPlaces:
    """The input that has as many words as `PLACES` has places, and the input that was a cache of
    keys [batch, heads, words before, size]."""

    words: str
    cache: str


@dataclass(frozen=True)
class StatefulRecord:
    """The pairs that became variables, and the names of all inputs and outputs that the model had
    before. `beams` says whether the model has the input `BEAMS` since. It has `PLACES` since, if
    `told` is there."""

    pairs: tuple[SymbolicPair, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    beams: bool
    told: ToldPlaces | None = None


@dataclass(frozen=True)
class Kept:
    """A state that later calls leave as it is, and the shape of the output that they gave for
    it."""

    state: str
    shape: list[int]


@dataclass(frozen=True)
class FirstCall:
    """An input `flag` that said whether there are states, and is `later` where there are. Now it is
    whether `state` has elements; `state` is "" if one decoder serves all calls.

    `empty` are the states that have no elements before the first call, each with the axis of which
    the size is 0, `once` those of them that start with what the first call gives. `kept` are
    the outputs that later calls gave empty before.
    """

    flag: str
    later: bool
    state: str
    empty: dict[str, int]
    once: list[str]
    kept: dict[str, Kept]


BEAMS = "beam_idx"
"""The input that says which sequence of the call before each sequence of this one continues."""

PLACES = "position_ids"
"""The input that says where each new word stands in its sequence."""

STATE: Entry[list[StatePair]] = Entry("state", list[StatePair], "variables")
"""The entry for variables that became pairs."""

STATEFUL: Entry[StatefulRecord] = Entry("stateful", StatefulRecord, "pairs of state")
"""The entry for pairs that became variables."""

TYPES: Entry[dict[str, str]] = Entry("state_types", dict[str, str], "types of variables")
"""The entry for the types of variables, by their ids, but for those of f32."""

FIRST_CALLS: Entry[list[FirstCall]] = Entry("first_calls", list[FirstCall], "first calls")
"""The entry for inputs that a state stands for since."""
