"""Patterns of several operators become the one operator of the standard that means the same.

A pattern is declared (`bridge.neutral.terms`). Beside it stands a function `f(b, found, uses)` with
the conditions that terms do not say. It gives the value that takes the place of the last node's
output that is used, having made its nodes with the builder, or None where a condition fails.
Nodes within a pattern go when nobody else uses them. Of two patterns for an operator the larger
comes first.
Names: the node that is made has that of the first node of the pattern, which is what a rule on the
way to IR gives the name of the node it is for.
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
    """A pattern and what is built in its place, which has the name of the node of `named`."""

    pattern: Term
    named: Term
    opset: int
    build: Build

    def __call__(self, b: Builder, node: Node, uses: Uses) -> Value | None:
        """What is built for the first match that all conditions hold for."""
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
    """Declares the pattern of a function, and the operator set that has what it builds."""
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
