"""Infinities of f64 in constants.

The CPU plugin computes f64 in f32, and replaces infinities in constants by the largest numbers of
f32. An infinity computed at run time stays infinite.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import F32, F64
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.quirks.opaque import opaque, recognise
from bridge.quirks.quirk import Place, Quirk, rewriting


def _in_32_bits(node: Node) -> np.ndarray | None:
    """The numbers of an f64 constant, or of a constant cast to f64, as f32. None without an
    infinity, or if f32 would round a number."""
    (made,) = node.outputs
    source = node.inputs[0] if node.op == "Cast" else made
    numbers = known_of(source).array if made.element is F64 else None
    if numbers is None or numbers.dtype.kind != "f" or not np.isinf(numbers).any():
        return None
    with np.errstate(over="ignore"):
        narrow = numbers.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), numbers, equal_nan=True) else None


def of_f32(b: Builder, node: Node, place: Place) -> Result:
    """The numbers in f32, hidden from OpenVINO's constant folding, and cast to f64."""
    narrow = _in_32_bits(node)
    return None if narrow is None else b.cast(opaque(b, b.constant(narrow, F32), "number"), F64)


_rewritten = rewriting("Cast", "Constant", by=of_f32)


def hide_infinities(graph: Graph, context: Context) -> bool | None:
    """Rewrites such constants, in place."""
    made = (node for node in graph.walk() if node.op in ("Cast", "Constant"))
    found = any(_in_32_bits(node) is not None for node in made)
    return found and _rewritten(graph, context)


def _constants(b: Builder, node: Node) -> Iterator[Value]:
    (x,) = node.inputs
    found = recognise(x.producer) if x is not None and x.producer is not None else None
    numbers = known_of(found[1]).array if found is not None else None
    if numbers is not None and node.outputs[0].element is F64:
        yield b.constant(numbers.astype(np.float64), F64)


QUIRK = Quirk(
    releases="2026.4",
    symptom="An infinite constant of f64 becomes the largest number of f32.",
    fires="At an f64 constant, or a constant cast to f64, with an infinity, if f32 has all its "
    "numbers.",
    safe="f64 has all numbers of f32.",
    cost="an Add of a 0, which a Bucketize makes of a random number",
    run=hide_infinities,
    guess={"Cast": _constants},
)
