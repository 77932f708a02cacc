"""Records in a model's metadata: variables of IR, and their pairs of inputs and outputs in ONNX."""

from dataclasses import dataclass

from bridge.records.entry import Entry


@dataclass(frozen=True)
class StatePair:
    """A variable, and the names of the input and the output that hold it before and after a
    call."""

    variable: str
    input: str
    output: str


@dataclass(frozen=True)
class SymbolicPair(StatePair):
    """A pair with the symbols of its dimensions before and after a call. A dimension without a
    symbol has None."""

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
    before. If `beams` is true, the model has the new input `BEAMS`. If `told` is there, the model
    has the new input `PLACES`."""

    pairs: tuple[SymbolicPair, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    beams: bool
    told: ToldPlaces | None = None


@dataclass(frozen=True)
class Kept:
    """A state that later calls leave unchanged, and the shape of the empty output that they gave
    for the state."""

    state: str
    shape: list[int]


@dataclass(frozen=True)
class FirstCall:
    """A removed input `flag` that said whether there are states: it was `later` if there are. Now
    `state` says the same: it has elements or not. `state` is "" if one decoder serves all calls.

    `empty` are the states without elements before the first call, each with the axis whose size
    is 0. `once` are the states among them that start with a value that the first call computes.
    `kept` are the outputs that later calls gave as empty tensors.
    """

    flag: str
    later: bool
    state: str
    empty: dict[str, int]
    once: list[str]
    kept: dict[str, Kept]


BEAMS = "beam_idx"
"""The input that says, for each sequence, which sequence of the last call it continues."""

PLACES = "position_ids"
"""The input that says where each new word stands in its sequence."""

STATE: Entry[list[StatePair]] = Entry("state", list[StatePair], "variables")
"""The entry for variables that became pairs."""

STATEFUL: Entry[StatefulRecord] = Entry("stateful", StatefulRecord, "pairs of state")
"""The entry for pairs that became variables."""

TYPES: Entry[dict[str, str]] = Entry("state_types", dict[str, str], "types of variables")
"""The entry for the types of variables, by their ids. Variables of f32 are left out."""

FIRST_CALLS: Entry[list[FirstCall]] = Entry("first_calls", list[FirstCall], "first calls")
"""The entry for inputs that a state replaced."""
