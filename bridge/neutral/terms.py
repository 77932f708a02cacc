"""Patterns of several nodes, declared as small graphs, and the engine that finds them.

    x, slope = var(F32), constant()
    leaky = op("Max", x, x * slope)

A term stands for one value. An operator's term fits an output of such a node if only the pattern
uses it (`shared()`: others may use it too). The inputs of a commutative operator fit in either
order. A number fits a value that is known to be this number, None an absent input. Inputs that are
not declared may be any. `x * slope` is `op("Mul", x, slope)`, and so on; `one | other` fits if
either term fits. A term that stands in a pattern twice is the same value in both places.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bridge.neutral.graph import Node, Value, producer_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import Element
from bridge.vocabulary import has_trait

UseCount = Callable[[Value], int]
"""How often a value is used."""

Needs = frozenset[tuple[str, ...]]
"""Sets of operators."""


def _of(name: str) -> Callable[[Any, Any], Op]:
    return lambda term, other: op(name, term, other)


def _reflected(name: str) -> Callable[[Any, Any], Op]:
    return lambda term, other: op(name, other, term)


class Term(ABC):
    """A condition on a value."""

    def __or__(self, other: Term) -> Term:
        return Either(self, other)

    __add__, __radd__ = _of("Add"), _reflected("Add")
    __sub__, __rsub__ = _of("Sub"), _reflected("Sub")
    __mul__, __rmul__ = _of("Mul"), _reflected("Mul")
    __truediv__, __rtruediv__ = _of("Div"), _reflected("Div")
    __pow__ = _of("Pow")

    def __neg__(self) -> Op:
        return op("Neg", self)

    def __abs__(self) -> Op:
        return op("Abs", self)

    def matches(
        self, value: Value | None, found: Found, count: UseCount, root: bool = False
    ) -> Iterator[Found]:
        """All ways in which a value fits, given the values found so far; a root may have any
        uses."""
        if self in found:
            if found[self] is value:
                yield found
        elif value is not None:
            yield from self._fits(value, Found({**found, self: value}), count, root)

    @property
    def needs(self) -> Needs:
        """What a graph has if the term fits one of its values: of each set one operator."""
        return frozenset()

    @abstractmethod
    def _fits(self, value: Value, found: Found, count: UseCount, root: bool) -> Iterator[Found]: ...


class Found(dict[Term, Value]):
    """The values that terms of a pattern stand for; of alternatives only the one that was taken."""

    def node(self, term: Term) -> Node:
        """The node that gives the value of a term."""
        return self[term].node


@dataclass(frozen=True, eq=False)
class Var(Term):
    """Any value of these types and this rank for which `where` holds; () and None do not ask."""

    elements: tuple[Element, ...] = ()
    rank: int | None = None
    where: Callable[[Value], bool] | None = None

    def _fits(self, value: Value, found: Found, count: UseCount, root: bool) -> Iterator[Found]:
        if (
            (not self.elements or value.element in self.elements)
            and (self.rank is None or value.rank == self.rank)
            and (self.where is None or self.where(value))
        ):
            yield found


@dataclass(frozen=True, eq=False)
class Absent(Term):
    """An optional input that a node does not have."""

    def matches(
        self, value: Value | None, found: Found, count: UseCount, root: bool = False
    ) -> Iterator[Found]:
        """The ways in which an absent value fits."""
        if value is None:
            yield found

    def _fits(self, value: Value, found: Found, count: UseCount, root: bool) -> Iterator[Found]:
        return iter(())


@dataclass(frozen=True, eq=False)
class Either(Term):
    """Fits if one of two terms fits; the first is tried first."""

    first: Term
    second: Term

    @property
    def needs(self) -> Needs:
        """What both terms need."""
        return self.first.needs & self.second.needs

    def _fits(self, value: Value, found: Found, count: UseCount, root: bool) -> Iterator[Found]:
        for term in (self.first, self.second):
            yield from term.matches(value, found, count, root)


@dataclass(frozen=True, eq=False)
class Op(Term):
    """Fits the output `output` of a node of one of these operators."""

    ops: tuple[str, ...]
    inputs: tuple[Term, ...]
    attributes: Mapping[str, Any]
    output: int = 0
    single: bool = True

    @property
    def needs(self) -> Needs:
        """One of these operators, and what the inputs need."""
        return frozenset({self.ops}).union(*(term.needs for term in self.inputs))

    def shared(self) -> Op:
        """The term of a value that others may use, too."""
        return replace(self, single=False)

    def taking(self, output: int) -> Op:
        """The term of another output of such a node."""
        return replace(self, output=output)

    def _fits(self, value: Value, found: Found, count: UseCount, root: bool) -> Iterator[Found]:
        node = producer_of(value, *self.ops)
        if (
            node is None
            or node.outputs[self.output] is not value
            or (self.single and not root and count(value) != 1)
            or any(node.attributes.get(k, False) != v for k, v in self.attributes.items())
        ):
            return
        orders = [self.inputs]
        if len(self.inputs) > 1 and has_trait(node.op, "commutes"):
            orders.append((self.inputs[1], self.inputs[0], *self.inputs[2:]))
        for order in orders:
            yield from _fit(order, node, found, count)


def _fit(
    terms: tuple[Term, ...], node: Node, found: Found, count: UseCount, index: int = 0
) -> Iterator[Found]:
    """All ways in which the inputs of a node from `index` on fit, one when it is asked for."""
    if index == len(terms):
        yield found
        return
    for way in terms[index].matches(node.input(index), found, count):
        yield from _fit(terms, node, way, count, index + 1)


def var(
    *elements: Element, rank: int | None = None, where: Callable[[Value], bool] | None = None
) -> Var:
    """A value of one of these types, if any are given."""
    return Var(elements, rank, where)


def constant(*elements: Element, rank: int | None = None) -> Var:
    """A known value."""
    return Var(elements, rank, lambda value: known_of(value).array is not None)


def op(ops: str, *inputs: Term | float | None, **attributes: Any) -> Op:
    """A node of one of some operators ("Div | Mod"), with these first inputs and attributes. An
    attribute that a node does not have counts as False."""
    return Op(tuple(ops.split(" | ")), tuple(map(_term, inputs)), attributes)


def number(known: float, rank: int | None = None) -> Var:
    """A value known to be one number."""
    return Var(rank=rank, where=partial(is_number, number=known))


def is_number(value: Value | None, number: float) -> bool:
    """Whether a value is known to be one number."""
    known = known_of(value).array
    return known is not None and known.size == 1 and bool((known == number).all())


def _term(wanted: Term | float | None) -> Term:
    if wanted is None:
        return Absent()
    return wanted if isinstance(wanted, Term) else number(wanted)
