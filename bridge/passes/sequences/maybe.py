"""Optionals, as a flag and their content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.types import BOOL, OptionalType, TensorType
from bridge.passes.sequences.form import Form


def content_of(form: Form | None) -> Form | None:
    """The content of an optional, or the form itself."""
    while isinstance(form, Maybe):
        form = form.payload
    return form


def content_for(value: Value, form: Form) -> Form:
    """The form of a value: its content, if the value is no optional. (A state may enter a Loop as
    an optional and leave as its content.)"""
    return form if isinstance(value.type, OptionalType) else content_of(form) or form


@dataclass(frozen=True)
class Maybe(Form):
    """An optional: `present`, a boolean scalar, and the payload. An absent optional has a dummy as
    payload; the payload is None if nothing tells its type."""

    present: Value
    payload: Form | None

    def leaves(self) -> tuple[Value, ...]:
        return self.present, *(self.payload.leaves() if self.payload else ())

    def with_leaves(self, values: Iterator[Value]) -> Maybe:
        present = next(values)
        return Maybe(present, self.payload and self.payload.with_leaves(values))

    def leaf_names(self) -> tuple[str, ...]:
        return "present", *(self.payload.leaf_names() if self.payload else ())

    def leaf_types(self) -> list[TensorType]:
        return [TensorType(BOOL, ()), *(self.payload.leaf_types() if self.payload else ())]

    def structure(self, exact: bool = False) -> object:
        return Maybe, self.payload and self.payload.structure(exact)

    def hold(self, b: Builder, form: Form, name: str) -> Form:
        if not isinstance(form, Maybe):
            form = Maybe(b.constant(True), form)
        if self.payload is None:
            return Maybe(form.present, None)
        if form.payload is None:
            return Maybe(form.present, self.payload.dummy(b))
        return Maybe(form.present, self.payload.hold(b, form.payload, name))

    def dummy(self, b: Builder) -> Maybe:
        payload = self.payload and self.payload.dummy(b)
        return Maybe(b.constant(False), payload)
