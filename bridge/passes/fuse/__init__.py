"""Replaces patterns of several operators by the one standard operator with the same meaning.

A pattern is declared (`bridge.neutral.terms`). Beside it stands a function `f(b, found, uses)`,
which checks the conditions that terms cannot state. It makes the new nodes with the builder and
returns the value that replaces the used output of the last node. It returns None if a condition
fails. The old nodes of the pattern are removed if they have no other use. If two patterns make one
operator, the larger pattern comes first.

The new node has the name of the pattern's first node. A rule on the way to IR gives this first
node the name of the node that it expands.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.rewrite import Pattern, Result
from bridge.neutral.terms import Found, Needs, Term
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

    def may_fit(self, ops: set[str], opset: int) -> bool:
        """Whether the pattern may fit in a graph of these operators, for an operator set."""
        return self.opset <= opset and all(not ops.isdisjoint(some) for some in self._needs)

    @cached_property
    def _needs(self) -> Needs:
        return self.pattern.needs

    def __call__(self, b: Builder, node: Node, uses: Uses) -> Value | None:
        """The replacement for the first match for which all conditions hold.

        A fusion does not broadcast its result, so one that a constant gives more axes stays."""
        output = uses.output(node)
        for match in self.pattern.matches(output, Found(), uses.count, root=True):
            b.name = match.node(self.named).name
            value = self.build(b, match, uses)
            if value is not None and (
                value.rank == output.rank or None in (value.rank, output.rank)
            ):
                return value
            b.nodes.clear()
        return None


def fuses(pattern: Term, named: Term | None = None, opset: int = 0) -> Callable[[Build], Declared]:
    """Declares the pattern of a function, and the first operator set that has its operators."""
    return lambda build: Declared(pattern, named or pattern, opset, build)


def fuse(graph: Graph, table: Mapping[str, Sequence[Fusion]], context: Context) -> bool:
    """Fuses, in place, by the first of the patterns for an operator that fits. Patterns that need
    operators which the graph does not have are not tried."""
    ops, opset = {node.op for node in graph.walk()}, context.target.opset
    tried = {op: [f for f in table[op] if _may_fit(f, ops, opset)] for op in ops & table.keys()}
    tried = {op: fusions for op, fusions in tried.items() if fusions}
    pattern = first_of(lambda node: tried[node.op], context, frozenset(tried))
    return bool(tried) and Uses(graph).run(pattern)


def _may_fit(fusion: Fusion, ops: set[str], opset: int) -> bool:
    return not isinstance(fusion, Declared) or fusion.may_fit(ops, opset)


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
