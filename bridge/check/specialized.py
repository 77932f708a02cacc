"""A model against its specialized form, which holds what the original is fed.

The record of the specialized file says which inputs became constants, and which shapes inputs were
given (`bridge.records.specialized`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridge.check.surgery.sites import Branch, branches_of, sites_of
from bridge.errors import UsageError
from bridge.neutral.graph import Model
from bridge.neutral.types import Dim
from bridge.passes.inputs import inputs_by_name, override_shapes
from bridge.passes.specialize import fix_values, settle, tensor_for
from bridge.records.specialized import SPECIALIZED, SpecializedRecord

NEVER_TAKEN = "is not taken with the values and shapes that are fixed"


@dataclass(frozen=True)
class Fixed:
    """Values and shapes of inputs of the original, by name. `recorded` are the values of a record.

    A record counts if the graph agrees: the input is gone, or has the recorded shape."""

    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    shapes: Mapping[str, tuple[Dim, ...]] = field(default_factory=dict)
    recorded: frozenset[str] = frozenset()

    @classmethod
    def of(cls, original: Model, other: Model, given: Mapping[str, Any]) -> Fixed:
        """What the other's record fixes, and the values that were `given` for the check. UsageError
        for a value that is neither recorded nor given."""
        own = SPECIALIZED.read(original.metadata) or SpecializedRecord()
        record = SPECIALIZED.read(other.metadata) or SpecializedRecord()
        its = {name: value for value in other.graph.inputs for name in value.names}
        names = {name for value in original.graph.inputs for name in value.names}
        named = inputs_by_name(original)
        values = {
            name: tensor_for(named(name), name, value).array() for name, value in given.items()
        }
        for name, fixed in record.values.items():
            array = fixed.array()
            if name in values or name not in names or name in its:
                continue
            if array is None:
                raise UsageError(
                    f'the record does not hold the value of "{name}", which is large; give it with '
                    f"--value {name}=FILE.npy"
                )
            values[name] = array
        shapes = {
            name: record.dims(name)
            for name in record.shapes
            if name in names
            and name not in own.shapes
            and (name not in its or its[name].shape == record.dims(name))
        }
        return cls(values, shapes, frozenset(values) - given.keys())

    def __bool__(self) -> bool:
        return bool(self.values or self.shapes)

    def told(self, whose: str) -> list[str]:
        """What the first line of the report says of the values in the record of a file."""
        said = [
            f'"{name}" = {np.array2string(value, threshold=4, edgeitems=2, separator=",")}'
            for name, value in self.values.items()
            if name in self.recorded
        ]
        return [f"with {', '.join(said)}, as {whose} has it fixed"] if said else []

    def shape(self, model: Model) -> None:
        """Gives the inputs of a model their shapes, in place."""
        if self.shapes:
            override_shapes(model, self.shapes)

    def never_taken(self, model: Model) -> set[Branch]:
        """The branches of Ifs and Loops of a model, which is changed, that specialization folds
        away."""
        sites = sites_of(model)
        self.shape(model)
        fix_values(model, self.values)
        settle(model.graph)
        left = {node for node in model.graph.walk() if node.bodies}
        return set(branches_of(site for node, site in sites.items() if node not in left))


def is_form_of(one: Model, other: Model) -> bool:
    """Whether a model has become constants what are inputs of the other."""
    record = SPECIALIZED.read(one.metadata)
    names = {name for value in other.graph.inputs for name in value.names}
    return record is not None and not names.isdisjoint(record.values)
