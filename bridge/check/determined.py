"""Which elements of its results a model determines.

An engine may leave memory as it was: onnxruntime's GroupQueryAttention does so behind the valid
length of a cache. Other results are drawn, or depend on the order of threads. So the original, and
nothing else, runs again: in sessions of their own, with memory that holds other bytes before each.
Elements in which these runs differ by more than the tolerance are not determined, and are compared
with nothing. An engine that allocates memory once has it filled where it is opened.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bridge.check.compare import Results, Tolerances, unlike
from bridge.check.engines import EngineError
from bridge.check.engines.adapters import named_like
from bridge.check.engines.sessions import current, memory_filled
from bridge.check.suite import Suite
from bridge.errors import BridgeError

Masks = Mapping[str, np.ndarray]
"""For each output of which a part is not determined, which elements; of a list, True alone."""

_BYTES = (0x3F, 0xC0)
_DRAWN = 4  # runs of a model that draws numbers; a random bit may be the same in a few

_DRAWING = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
    | {"RandomUniformLike", "ir::RandomUniform", "ir::Multinomial", "Dropout"}
)


def draws(suite: Suite) -> bool:
    """Whether the original draws random numbers."""
    return any(n.op in _DRAWING for n in suite.model(suite.original.opened).graph.walk())


def undetermined(
    suite: Suite, feeds: Sequence[Results], tolerances: Tolerances
) -> list[dict[str, np.ndarray]]:
    """For each of these inputs, the elements of the original's outputs that are not determined. An
    output that is drawn is so as a whole."""
    if draws(suite):
        runs = [suite.original.session.run_each(feeds) for _ in range(_DRAWN)]
        exact = Tolerances(0.0, 0.0, decided=frozenset({"*"}))
        found = [_masks(some, exact) for some in zip(*runs, strict=True)]
        return [{n: np.ones_like(mask) for n, mask in one.items()} for one in found]
    runs = []
    for byte in _BYTES:
        try:
            with memory_filled(byte):
                session = replace(current(), filled=True).open(suite.original.opened)
                runs.append(named_like(suite.original.session, session).run_each(feeds))
        except BridgeError:
            return [{} for _ in feeds]
    return [_masks(some, tolerances) for some in zip(*runs, strict=True)]


def _masks(runs: Sequence[Results | EngineError], tolerances: Tolerances) -> dict[str, np.ndarray]:
    """The elements in which runs with one input differ."""
    first, *others = [one for one in runs if not isinstance(one, EngineError)] or [{}]
    masks: dict[str, np.ndarray] = {}
    for name, value in first.items():
        far = [unlike(value, one[name], *tolerances.of(name, value)) for one in others]
        if any(one.any() for one in far):
            is_alike = len({one.shape for one in far}) == 1
            masks[name] = np.asarray(np.any(far, axis=0) if is_alike else True)
    return masks


def settled(results: Results, masks: Masks) -> Results:
    """The results with 0 for all elements that are not determined."""
    return {name: _settled(value, masks.get(name)) for name, value in results.items()}


def _settled(value: Any, mask: np.ndarray | None) -> Any:
    if mask is None or not isinstance(value, np.ndarray) or value.shape != mask.shape:
        return value
    return np.where(mask, np.zeros_like(value), value)
