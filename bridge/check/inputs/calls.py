"""Calls in a row, as a loop makes them that generates text.

The first call has empty states. Each later call takes the states that the call before it gave.
Lengths count the words of the earlier calls, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from bridge.check.engines import EngineError, Session
from bridge.check.engines.variables import Variables, dtype_of
from bridge.check.inputs.draw import Maker
from bridge.check.inputs.recipe import Recipe
from bridge.check.inputs.sizes import with_keys
from bridge.errors import UsageError
from bridge.neutral.graph import Model, Value, names_of_outputs
from bridge.neutral.inference.constraints import Operand
from bridge.neutral.types import BOOL
from bridge.passes.state.first_call import later_branch
from bridge.passes.state.names import pairs_of
from bridge.passes.state.variables import known_start
from bridge.records.state import FIRST_CALLS

_LATER = (2, 1)
"""Lengths of the second call, in the order that they are tried. A mask of one word would be
broadcast, and the check would not see a wrong length. A mask of two words is not broadcast."""
_CALLS = 3  # in a row
_ATTEMPTS = 6  # seeds, each with another batch size
_GROWING = 4  # dimensions, at most, that may count the words of earlier calls


@dataclass(frozen=True)
class States:
    """The states of a stateful model, as inputs and outputs.

    `pairs` has the output of each state's input. `empty` has the states without elements before
    the first call, each with the axis whose size is 0. `once` names the states among them that
    the first call sets to a computed start. `starts` has the start of each other state, unless
    the start is zeros. `flags` are inputs that say whether there are states, each with its value
    if there are states. `own` are the states that the model holds as variables: a first call
    does not feed them. `sized` maps the key of a start's dimension to the input, and its axis,
    that has the same size."""

    pairs: Mapping[str, str]
    empty: Mapping[str, int]
    once: Set[str]
    starts: Mapping[str, np.ndarray]
    flags: Mapping[str, bool]
    own: Sequence[Value]
    sized: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, original: Model) -> States | None:
        """The states of an IR with variables, None for another model. If `original` is an ONNX
        model, the defaults of its inputs are the starts."""
        variables = Variables.of(model)
        if variables is None:
            return None
        calls = FIRST_CALLS.read(model.metadata) or []
        constants = {name: known_start(node) for name, node in variables.read.items()}
        if original.format == "onnx":
            constants |= dict.fromkeys(constants)
            constants |= {value.name: tensor for value, tensor in original.defaults.items()}
        empty, once = dict[str, int](), set[str]()
        for name, node in variables.read.items():
            start, held = node.input(0), node.outputs[0]
            if start is not None and 0 in (start.shape or ()):
                empty[name] = start.dims.index(0)
            elif name in variables.begun:
                open = [
                    axis for axis, dim in enumerate(held.shape or ()) if not isinstance(dim, int)
                ]
                empty[name] = open[0] if open else 0
                once.add(name)
        for call in calls:
            empty |= {name: call.empty[name] for name in call.once}
        return cls(
            {pair.input: pair.output for pair in variables.pairs},
            empty,
            once,
            {
                name: tensor.array().astype(dtype_of(variables.hold[name]))
                for name, tensor in constants.items()
                if name in variables.read and name not in empty and tensor is not None
            },
            {call.flag: call.later for call in calls},
            [*variables.hold.values()] if variables.own else [],
            _sized(model, variables),
        )

    @classmethod
    def of_merged(cls, model: Model) -> States | None:
        """The states of a merged decoder, by their names or places, None for another model. It has
        an input that says whether there are states."""
        graph = model.graph
        inputs = {value.name: value for value in graph.inputs}
        outputs = dict(zip(names_of_outputs(graph), graph.outputs, strict=True))
        pairs = pairs_of(inputs, outputs)
        states = {inputs[name] for name in pairs}
        sides = {
            value.name: side
            for value in graph.inputs
            if value.element is BOOL and (side := later_branch(graph, value, states)) is not None
        }
        empty = {
            name: axis
            for name, output in pairs.items()
            for axis, dim in enumerate(inputs[name].shape or ())
            if not isinstance(dim, int) and dim != Operand(outputs[output])[axis]
        }
        flags = {name: not side for name, side in sides.items()}
        return cls(pairs, empty, set(), {}, flags, []) if flags and empty else None


def _sized(model: Model, variables: Variables) -> dict[str, tuple[str, int]]:
    """See `States.sized`."""
    places = {
        key: (value.name, axis)
        for value in model.graph.inputs
        for axis, keys in enumerate(_keys(value, axis) for axis in range(value.rank or 0))
        for key in keys
    }
    starts = {pair.variable: pair.input for pair in variables.pairs if pair.input in variables.read}
    found = {}
    for node in with_keys(model).graph.nodes:
        start = node.input(0) if node.op == "ReadValue" else None
        name = None if start is None else starts.get(node.attributes["variable_id"])
        for axis, dim in enumerate((start.shape if start is not None and name else ()) or ()):
            if isinstance(dim, str) and dim in places:
                found[f"{name}.{axis}"] = places[dim]
    return found


Held = dict[str, np.ndarray]
"""The contents of states, by the names of their inputs."""

Call = tuple[Recipe, dict[str, Any]]
"""A recipe, and the inputs that it makes."""


def calls_in_a_row(
    states: States, start: Recipe, inputs: Maker, session: Session
) -> tuple[list[Call], str]:
    """The longest row of calls that `session` runs, three at most, with recipes like `start`. If
    `session` does not run even a first call, the row is empty and the text says why."""
    best: list[Call] = []
    why = ""
    for attempt in range(_ATTEMPTS):
        row = _Row(states, replace(start, seed=start.seed + attempt), inputs, session)
        try:
            row.make()
        except (EngineError, UsageError) as error:
            why = why or str(error)
        best = max(best, row.calls, key=len)
        if len(best) == _CALLS:
            break
    return best, "" if best else why


@dataclass
class _Row:
    """Makes calls, one after the other. `growing` has the input dimensions whose size is the length
    of the first call, by their keys in a recipe. `kept` are the other sizes: all calls have
    them."""

    states: States
    base: Recipe
    inputs: Maker
    session: Session
    calls: list[Call] = field(default_factory=list)
    growing: list[tuple[str, ...]] = field(default_factory=list)
    kept: dict[str, int] = field(default_factory=dict)

    def make(self) -> None:
        """Makes the calls. Raises EngineError if the session refuses the first call, or each
        second call."""
        held, length = self._first()
        refused: EngineError | None = None
        for new, counting in self._ways() if length is not None else ():
            try:
                held = self._later(held, self._sizes(new, length or 0, counting))
            except EngineError as error:
                refused = error
                continue
            while len(self.calls) < _CALLS:
                length = (length or 0) + new
                new = min(new, 1)
                held = self._later(held, self._sizes(new, length, counting))
            return
        if refused is not None:
            raise refused

    def _first(self) -> tuple[Held, int | None]:
        """Makes the first call. Gives the states after the call, and the call's length. The
        length is None if other sizes are equal to it, and 0 if no state grows."""
        states = self.states
        sizes: dict[str, int] = {}
        for value in self.inputs.values:
            start = states.starts.get(value.name)
            if start is not None:
                for axis, size in enumerate(start.shape):
                    sizes |= dict.fromkeys(_keys(value, axis), size)
            elif value.name in states.empty:
                own, *symbols = _keys(value, states.empty[value.name])
                sizes |= dict.fromkeys([own] if value.name in states.once else [own, *symbols], 0)
        recipe = self._recipe(sizes, later=False)
        feeds = self.inputs.make(recipe)
        known = {v.name: v for v in self.inputs.values if v.name not in states.pairs}
        differ: dict[str, int] = {}
        for key, (name, axis) in states.sized.items():
            state, _, own = key.rpartition(".")
            if name in known and state in feeds and key not in sizes:
                size = feeds[name].shape[axis]
                if feeds[state].shape[int(own)] != size:
                    differ |= dict.fromkeys([key, *_keys(known[name], axis)], size)
        if differ:
            recipe = self._recipe(sizes | differ, later=False)
            feeds = self.inputs.make(recipe)
        begun = {
            name: states.starts.get(name, np.zeros_like(value))
            for name, value in feeds.items()
            if name in states.pairs
        }
        results = self._called(replace(recipe, values={**recipe.values, **begun}), feeds | begun)
        length = self._measure(feeds, results)
        return self._after(feeds, results), length

    def _measure(self, feeds: Mapping[str, Any], results: Mapping[str, Any]) -> int | None:
        """Separates sizes that stay from sizes that grow. Gives the length of the call."""
        states = self.states
        grown = {
            results[states.pairs[name]].shape[axis]
            for name, axis in states.empty.items()
            if name not in states.once
        }
        length = grown.pop() if len(grown) == 1 else 0
        # A size that a state keeps may be as large as the length.
        of_states = {
            dim
            for value in self.inputs.values
            if value.name in states.pairs
            for axis, dim in enumerate(value.dims)
            if isinstance(dim, str) and axis != states.empty.get(value.name)
        }
        for value in self.inputs.values:
            array = feeds[value.name]
            sizes = array.shape if isinstance(array, np.ndarray) else ()
            if length and sizes.count(length) > 1:
                return None
            for axis, dim in enumerate(value.dims if sizes else ()):
                if isinstance(dim, int) or axis == states.empty.get(value.name):
                    continue
                if sizes[axis] != length or not length or dim in of_states:
                    self.kept |= dict.fromkeys(_keys(value, axis), sizes[axis])
                elif value.name not in states.pairs:
                    self.growing.append(_keys(value, axis))
        return length

    def _ways(self) -> Iterator[tuple[int, tuple[tuple[str, ...], ...]]]:
        """Lengths of a second call, each with the dimensions that also count the words of earlier
        calls. Dimensions that operators compute as sums always count them, others perhaps."""
        growing = self.growing[:_GROWING]
        sums = {keys for keys in growing if not self.inputs.counts.sums.keys().isdisjoint(keys)}
        for new in _LATER if growing else (0,):
            for count in range(len(growing) + 1):
                for counting in combinations(growing, count):
                    if sums.issubset(counting):
                        yield new, counting

    def _sizes(self, new: int, before: int, counting: Sequence[tuple[str, ...]]) -> dict[str, int]:
        """The sizes of a call with `new` words, after `before` words of earlier calls."""
        sizes = dict(self.kept)
        # A symbol that both kinds of dimensions have is the number of new words.
        for keys in sorted(self.growing, key=lambda keys: keys not in counting):
            sizes |= dict.fromkeys(keys, new + before * (keys in counting))
        return sizes

    def _later(self, held: Held, sizes: Mapping[str, int]) -> Held:
        """Makes a further call. Gives the states after it."""
        recipe = self._recipe(sizes, later=True)
        known = {value.name: held[value.name] for value in self.inputs.values if value.name in held}
        recipe = replace(recipe, values={**recipe.values, **known})
        feeds = self.inputs.make(recipe) | held
        return self._after(feeds, self._called(recipe, feeds))

    def _recipe(self, sizes: Mapping[str, int], later: bool) -> Recipe:
        """The recipe of the next call."""
        base, place = self.base, len(self.calls)
        flags = {name: float(told is later) for name, told in self.states.flags.items()}
        return replace(
            base, seed=base.seed + place, sizes={**base.sizes, **sizes},
            fills={**base.fills, **flags}, call=place + 1,
        )  # fmt: skip

    def _called(self, recipe: Recipe, feeds: dict[str, Any]) -> dict[str, Any]:
        results = self.session.run(feeds)
        self.calls.append((recipe, feeds))
        return results

    def _after(self, feeds: Mapping[str, Any], results: Mapping[str, Any]) -> Held:
        """The states after a call. A later call of a merged decoder gives an empty output for a
        state that it keeps."""
        held = {}
        for name, output in self.states.pairs.items():
            given = results[output]
            held[name] = given if given.size or not np.size(feeds.get(name, ())) else feeds[name]
        return held


def _keys(value: Value, axis: int) -> tuple[str, ...]:
    """The keys in a recipe of a dimension of an input: its own, and its symbol."""
    dim = value.dims[axis]
    return (f"{value.name}.{axis}", *([dim] if isinstance(dim, str) else []))
