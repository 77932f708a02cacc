"""What two models of a check have in common: their Ifs and Loops, and the sizes of their inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bridge.check.instrument import Site, sites_of
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.types import Dim, Interval, high, innermost, low


def matched_sites(first: Model, other: Model) -> dict[Node, Site]:
    """The Ifs and Loops of `other`, with the sites of `first` that they stand for. They share a
    name of an output. Otherwise, if both models have as many, they have the same position."""
    mine, its = sites_of(first), sites_of(other)
    found: dict[Node, Site] = {}
    for loops in (False, True):
        own = {node: site for node, site in mine.items() if site.loop == loops}
        nodes = [node for node, site in its.items() if site.loop == loops]
        if len(own) == len(nodes):
            found |= dict(zip(nodes, own.values(), strict=True))
            continue
        counts = Counter(name for node in nodes for name in _names(node))
        places = {name: node for node in nodes for name in _names(node) if counts[name] == 1}
        for node, site in own.items():
            twin = next((places[name] for name in _names(node) if name in places), None)
            if twin is not None:
                found.setdefault(twin, site)
    return found


def _names(node: Node) -> list[str]:
    return list(dict.fromkeys(name for value in node.outputs for name in value.names))


def shared_sizes(first: Model, other: Model) -> dict[str, int | Interval]:
    """The sizes and ranges that the inputs of `other` give to open dimensions of `first`, by their
    keys in `Recipe.sizes`."""
    sizes: dict[str, int | Interval] = {}
    for value, twin in _inputs(first, other).items():
        own, its = innermost(value.type).shape, innermost(twin.type).shape
        if its is None or (own is not None and len(own) != len(its)):
            continue
        for axis, dim in enumerate(its):
            before: Dim = own[axis] if own is not None else Interval(0, None)
            if not isinstance(before, int) and _narrows(dim, before):
                assert not isinstance(dim, str)
                key = before if isinstance(before, str) else f"{value.name}.{axis}"
                sizes.setdefault(key, dim)
    return sizes


def _narrows(dim: Dim, other: Dim) -> bool:
    """Whether a dimension leaves fewer sizes open than another one."""
    return (low(dim), high(dim)) != (low(other), high(other)) and not isinstance(dim, str)


def _inputs(first: Model, other: Model) -> Mapping[Value, Value]:
    """The inputs of both, by name, or else by position if both have as many."""
    names = {name: value for value in other.graph.inputs for name in value.names}
    found = {
        value: next((names[name] for name in value.names if name in names), None)
        for value in first.graph.inputs
    }
    if None in found.values() and len(found) == len(other.graph.inputs):
        return dict(zip(first.graph.inputs, other.graph.inputs, strict=True))
    return {value: twin for value, twin in found.items() if twin is not None}
