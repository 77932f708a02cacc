"""A FakeQuantize behind a product with one constant for each channel, some of them negative.

The CPU plugin fuses the product into the ranges of the FakeQuantize, and confuses their ends.
"""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.quirks.opaque import undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting

ONE = np.ones(1, np.float32)


def product_kept(b: Builder, node: Node, place: Place) -> Result:
    """The FakeQuantize of a copy of the product, which the plugin does not fuse."""
    x = node.inputs[0]
    if x is None or (x.rank or 0) < 2 or (place.body is None and is_static(x.shape)):
        return None
    scale = _scale(x)
    channels = ((1,) * (len(x.dims) - scale.ndim) + scale.shape)[1]
    if channels != scale.size or scale.min() >= 0 or (scale == scale.flat[0]).all():
        return None
    return with_hidden(b, node, "memory", [True, *[False] * 4])


def _scale(value: Value) -> np.ndarray:
    """The constants along one axis by which a value is multiplied or divided."""
    known = value.behind("Cast").constant
    if known is not None:
        return (
            known.array().astype(np.float32) if known.size == max(known.shape, default=1) else ONE
        )
    made = value.producer
    if made is None or made.op not in ("Div", "Mul"):
        return ONE
    x, y = (ONE if factor is None else _scale(factor) for factor in made.inputs)
    with np.errstate(all="ignore"):
        return np.asarray(x * y if made.op == "Mul" else x / y)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A FakeQuantize behind a product with a constant for each channel, some of them "
    "negative, is wrong. This happens in a body or with a dynamic shape.",
    fires="At a FakeQuantize in a body or of open shape, behind a Mul or Div by constants that "
    "differ along axis 1, some of them negative.",
    safe="The maximum of a value with itself is the value.",
    cost="a maximum of each such product with itself",
    run=rewriting("FakeQuantize", by=product_kept),
    undo=undone("memory"),
)
