"""Replaces patterns of several operators by the one standard operator with the same meaning.

A pattern is declared (`bridge.neutral.terms`). Beside it stands a function `f(b, found, uses)`,
which checks the conditions that terms cannot state. It makes the new nodes with the builder and
returns the value that replaces the used output of the last node. It returns None if a condition
fails. The old nodes of the pattern are removed if nobody else uses them. If two patterns make one
operator, the larger pattern comes first.

The new node has the name of the pattern's first node. A rule on the way to IR gives this first
node the name of the node that it expands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.rewrite import Pattern, Result
from bridge.neutral.terms import Found, Term
from bridge.passes.context import Context
from bridge.passes.uses import Uses

Fusion = Callable[[Builder, Node, Uses], Value | None]
Choice = Callable[[Node], Sequence[Fusion]]
Build = Callable[[Builder, Found, Uses], Value | None]


@dataclass(frozen=True)
class Declared:
    """A pattern and the function that builds its replacement, named after the node of `named`."""

    pattern: Term
    named: Term
    opset: int
    build: Build

    def __call__(self, b: Builder, node: Node, uses: Uses) -> Value | None:
        """The replacement for the first match for which all conditions hold."""
        assert b.target is not None
        if b.target.opset < self.opset:
            return None
        for found in self.pattern.matches(uses.output(node), Found(), uses.count, root=True):
            b.name = found.node(self.named).name
            made = self.build(b, found, uses)
            if made is not None:
                return made
            b.nodes.clear()
        return None


def fuses(pattern: Term, named: Term | None = None, opset: int = 0) -> Callable[[Build], Declared]:
    """Declares the pattern of a function, and the first operator set that has its operators."""
    return lambda build: Declared(pattern, named or pattern, opset, build)


def by_op(table: Mapping[str, Sequence[Fusion]], context: Context) -> Pattern:
    """The first of the patterns for an operator that fits."""
    return first_of(lambda node: table[node.op], context, frozenset(table))


def first_of(choice: Choice, context: Context, ops: frozenset[str] | None = None) -> Pattern:
    """The first of several patterns that fits. It goes from the end, so that a pattern is met
    before the smaller ones within it."""

    def fused(b: Builder, node: Node, uses: Uses) -> Result:
        for fusion in choice(node):
            b.name = node.name
            made = fusion(b, node, uses)
            if made is not None:
                output = uses.output(node)
                return [made if value is output else None for value in node.outputs]
            b.nodes.clear()
        return None

    return Pattern(fused, ops, context.target, backwards=True)
