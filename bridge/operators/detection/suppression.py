"""Suppression of overlapping boxes class by class. The result is a table of scores."""

from collections.abc import Callable

import numpy as np

from bridge.operators import Builder, Value

NONE = float(np.finfo(np.float32).min)
"""The score of a suppressed box."""
LEAST = 2.0**-125
"""A positive number that engines do not treat as 0."""

Suppress = Callable[[Builder, Value, Value, Value], Value]
"""(builder, low corners, high corners, scores) to the rows (image, class, box) of the selected
boxes."""


def kept_scores(
    b: Builder,
    boxes: Value,
    scores: Value,
    background: int,
    best: int,
    overlap: float,
    least: float,
    suppress: Suppress | None = None,
) -> Value:
    """The scores [images, classes, boxes] of the boxes [images, boxes, 4] after suppression, or
    NONE. The class `background` is left out; -1 means no background. A class keeps only its `best`
    scores (-1: all) above `least`. `overlap` is the maximum overlap of two boxes; below 0, one box
    of each class stays. `suppress` replaces ONNX's suppression."""
    none, candidates = b.constant(NONE), scores
    if background >= 0:
        label = b.op("Range", b.constant(0), b.scalar(b.sizes(scores, 1)), 1)
        candidates = b.where(b.unsqueeze(label.equal(background), 1), none, candidates)
    if best > 0:
        count = b.min(b.constant([best]), b.sizes(scores, 2))
        highest, place = b.ops("TopK", 2, candidates, count, axis=2)
        unscored = b.op("Expand", none, b.op("Shape", scores))
        candidates = b.op("ScatterElements", unscored, place, highest, 2)
    # ONNX exchanges the corners of a box if they are in reverse order. Here, such a box has no
    # overlap.
    low, high = b.split(boxes, 2, 2, 2)
    high = b.max(low, high)
    if suppress is not None:
        kept = suppress(b, low, high, candidates)
    else:
        most = b.constant([1]) if overlap < 0 else b.sizes(scores, 2)
        limits = most, b.constant([max(overlap, 0.0)]), b.constant([least])
        kept = b.op("NonMaxSuppression", b.concat(2, low, high), candidates, *limits)
    empty = b.op("Expand", none, b.op("Shape", scores))
    return b.op("ScatterND", empty, kept, b.op("GatherND", candidates, kept))


def just_below(number: float) -> float:
    """The largest f32 below a number that engines do not treat as equal to the number."""
    return float(np.nextafter(np.float32(number), np.float32(-np.inf))) if number else -LEAST


def by_score(b: Builder, scores: Value, rows: Value) -> tuple[Value, Value]:
    """Scores [n] in falling order, and their rows in the same order."""
    scores, order = b.ops("TopK", 2, scores, b.sizes(scores, 0), axis=0)
    return scores, b.op("Gather", rows, order, 0)


def of_classes(b: Builder, scores: Value) -> tuple[Value, Value]:
    """The indices of the images and of the classes of scores [images, classes, boxes]. Each is
    [images * classes]."""
    image, label = (b.unsqueeze(b.positions(scores, axis), 1 - axis) for axis in (0, 1))
    dims = b.sizes(scores, 0, 1)
    return b.reshape(b.expand(image, dims), -1), b.reshape(b.expand(label, dims), -1)
