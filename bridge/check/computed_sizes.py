"""Sizes of inputs that operators demand of the sizes that they compute.

An image is cut into patches, and a table of fixed length is added to these: so the image has one
size, which no operator demands of the input itself. Inference is run with sizes in the place of all
open dimensions, and the search goes where the computed sizes contradict each other less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from bridge.check.demands import SizeBounds
from bridge.check.inputs import keys_of, open_sizes
from bridge.check.matching import with_sizes
from bridge.errors import BridgeError
from bridge.neutral.graph import Model, Value
from bridge.neutral.inference import infer_graph, strictly
from bridge.neutral.inference.constraints import contradiction, equal_sizes, sizes_that_suit
from bridge.neutral.types import ANY, Dim, high, low

_FIRST = 2  # of all open dimensions
_POWERS = tuple(1 << power for power in range(12))  # sizes that are tried first
_UNKNOWN = 1e4  # the weight of a dimension that is not known, or of a node that cannot run
_ROUNDS = 2  # since sizes depend on each other


def fitting_sizes(
    model: Model, inputs: Sequence[Value], given: Mapping[str, SizeBounds], over: Callable[[], bool]
) -> dict[str, int]:
    """Sizes of all open dimensions of the inputs with which the sizes that operators compute
    contradict each other least, by their keys in `Recipe.sizes`. Sizes that are `given` stay. The
    search ends when `over` says so."""
    dims = {key: dim for value in inputs for key, dim in open_sizes(value).items()} | dict(given)

    @cache
    def misfit(*numbers: int) -> float:
        return _misfit(model, dict(zip(dims, numbers, strict=True)))

    sizes = {key: _nearest(_FIRST, dim) for key, dim in dims.items()}
    least = misfit(*sizes.values())
    for group in [*_groups(inputs)] * _ROUNDS:
        keys = [key for key in group if not isinstance(dims[key], int)]
        # First the size of the right magnitude, then nearer and nearer.
        step, numbers = 0, list(_POWERS)
        while keys and numbers and least and not over():
            tried = [sizes | {k: _nearest(n, dims[k]) for k in keys} for n in numbers]
            found = min(((misfit(*one.values()), place) for place, one in enumerate(tried)))
            if found[0] < least:
                least, sizes = found[0], tried[found[1]]
            step = step // 2 if step else sizes[keys[0]] // 2
            numbers = [sizes[keys[0]] - step, sizes[keys[0]] + step] if step else []
    return sizes


def _nearest(size: int, dim: SizeBounds | Dim) -> int:
    """The size that a dimension may have, nearest to another size."""
    most = high(dim)
    return max(low(dim), size if most is None else min(size, most))


def _groups(inputs: Sequence[Value]) -> Iterator[list[str]]:
    """Dimensions that are changed at once: those of an image behind its channels, then each."""
    for value in inputs:
        keys = [key for key in open_sizes(value)]
        if value.rank is not None and value.rank > 3:
            yield [k for k in keys if k not in keys_of(value)[:2] and k not in value.dims[:2]]
    yield from ([key] for value in inputs for key in open_sizes(value))


def _misfit(model: Model, sizes: Mapping[str, int]) -> float:
    """How much the computed sizes contradict each other, 0 for not at all."""
    sized = with_sizes(model, sizes)
    try:
        with strictly(False):
            infer_graph(sized.graph)
    except BridgeError:
        return float("inf")
    found = 0.0
    for node in sized.graph.nodes:
        if node.op == "Constant":
            continue
        pairs = [*equal_sizes(node), *sizes_that_suit(node)]
        apart = [abs(a - b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
        found += sum(apart) or _UNKNOWN * bool(contradiction(node))
        found += _UNKNOWN * sum(
            not isinstance(dim, int) or dim < 1
            for v in node.outputs
            for dim in ((ANY,) if v.shape is None else v.shape)
        )
    return found
