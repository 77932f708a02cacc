"""ONNX's operators that move, choose, reduce and count."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.attributes.family import Call, Draw, call, family


@family(
    "onnx", ("12", "123", "2"), mode=("constant", "reflect", "edge", "wrap"), value=(None, 1.5),
    pads=((0, 0, 1, 0, 0, 1), (1, 1, 1, 1, 1, 1), (0, 0, -1, 0, 0, 2), (0, -1, 0, 1, 0, 0),
          (0, 2, 3, 0, 2, 3), (0, 0, -1, 0, 0, -1)),
    axes=(None, (1,), (2, 0), (-1,)),
)  # fmt: skip
def paddings(
    d: Draw, mode: str, value: float | None, pads: tuple[int, ...], axes: tuple[int, ...] | None
) -> Call | None:
    if axes is not None:
        pads = tuple(side[axis % 3] for side in (pads[:3], pads[3:]) for axis in axes)
    filler = None if value is None else np.float32(value)
    places = None if axes is None else np.array(axes)
    return call("Pad", 21, d.floats(2, 3, 4), np.array(pads), filler, places, mode=mode)


REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")


@family(
    "onnx", ("1", ""), op=REDUCTIONS, axes=(None, (), (0,), (1, 2), (-1,), (0, 1, 2)), keep=(0, 1),
    noop=(0, 1), type=("f4", "i4", "i8", "f8", "u4"), size=(3, 0),
)  # fmt: skip
def reductions(
    d: Draw, op: str, axes: tuple[int, ...] | None, keep: int, noop: int, type: str, size: int
) -> Call | None:
    if (type != "f4" and ("Log" in op or not size)) or (op == "Mean" and not size):
        return None  # The mean of an empty tensor is not defined.
    x = d.of(type, 2, size, 4)
    x = np.abs(x) + np.float32(0.1) if op == "LogSum" else x
    places = None if axes is None else np.array(axes, np.int64)
    return call(f"Reduce{op}", 18, x, places, keepdims=keep, noop_with_empty_axes=noop)


@family(
    "onnx", op=("ArgMax", "ArgMin"), type=("f4", "i4", "u1", "i1", "i8"), axis=(0, 1, -1),
    keep=(0, 1), last=(0, 1),
)  # fmt: skip
def extremes(d: Draw, op: str, type: str, axis: int, keep: int, last: int) -> Call | None:
    x = d.places(0, 3, 2, 4, 3).astype(type)
    return call(op, 13, x, axis=axis, keepdims=keep, select_last_index=last)


@family("onnx", ("1", ""), axis=(0, 1, -1), largest=(0, 1), k=(1, 2, 3), type=("f4", "i8"))
def largest(d: Draw, axis: int, largest: int, k: int, type: str) -> Call | None:
    x = d.of(type, 3, 3, 4, scale=1.5)
    return call("TopK", 11, x, np.array([k]), outputs=2, axis=axis, largest=largest)


@family(
    "onnx", ("1", ""), type=("f4", "i4", "i8", "f8"), axis=(0, 1, -1), exclusive=(0, 1),
    reverse=(0, 1),
)  # fmt: skip
def cumulative(d: Draw, type: str, axis: int, exclusive: int, reverse: int) -> Call | None:
    x = d.of(type, 2, 3)
    return call("CumSum", 14, x, np.array(axis), exclusive=exclusive, reverse=reverse)


INDICES = {
    "number": np.array(1), "list": np.array([0, -1]), "table": np.array([[1, 0], [-2, 1]]),
    "none": np.zeros(0, np.int64),
}  # fmt: skip


@family("onnx", ("1", ""), axis=(0, 1, 2, -1), indices=tuple(INDICES), type=("i4", "i8"))
def gathers(d: Draw, axis: int, indices: str, type: str) -> Call | None:
    return call("Gather", 13, d.floats(3, 4, 2), INDICES[indices].astype(type), axis=axis)


@family("onnx", ("1", ""), axis=(0, 1, 2, -1), batch=(None, 0, 1, 2), depth=(1, 2))
def element_gathers(d: Draw, axis: int, batch: int | None, depth: int) -> Call | None:
    if batch is None:
        if depth == 2:
            return None
        return call("GatherElements", 13, d.floats(3, 4, 2), d.places(-2, 2, 2, 3, 2), axis=axis)
    if axis:
        return None
    x = d.floats(2, 3, 2, 4)
    shape = x.shape[:batch] + ((2,) if batch < 2 else ())
    parts = [d.places(-size, size, *shape) for size in x.shape[batch : batch + depth]]
    return call("GatherND", 13, x, np.stack(parts, -1), batch_dims=batch)


@family(
    "onnx", ("1", ""), op=("ScatterElements", "ScatterND"), axis=(0, 1, 2, -1), depth=(1, 2),
    reduction=("none", "add", "mul", "max", "min"), type=("f4", "i4", "i8", "u1"),
)  # fmt: skip
def scatters(d: Draw, op: str, axis: int, depth: int, reduction: str, type: str) -> Call | None:
    x = d.of(type, 3, 4, 2)
    if op == "ScatterElements":
        if depth == 2:
            return None
        places = d.places(-2, 2, 2, 3, 2)
        if reduction == "none":  # The standard leaves open which of two equal places wins.
            places = np.argsort(d.rng.random((2, 3, 2)), axis=axis)
        return call(op, 18, x, places, d.of(type, 2, 3, 2), axis=axis, reduction=reduction)
    if axis:
        return None
    places = np.array([[0], [2]]) if depth == 1 else np.array([[0, 1], [-1, -2]])
    if reduction != "none":
        places = np.concatenate([places, places[:1]])
    updates = d.of(type, len(places), *x.shape[depth:])
    return call(op, 18, x, places, updates, reduction=reduction)


@family(
    "onnx", ("1234", ""), start=(0, 1, -2, 10, -10), end=(3, -1, 100, -100, 0), step=(1, 2, -1, -3),
    axis=(1, -2),
)  # fmt: skip
def slices(d: Draw, start: int, end: int, step: int, axis: int) -> Call | None:
    ends = [np.array([value]) for value in (start, end, axis, step)]
    return call("Slice", 13, d.floats(4, 5), *ends)


@family("onnx", ("1", ""), axis=(0, 1, -1), sizes=(None, (1, 3)), count=(None, 2, 3))
def splits(d: Draw, axis: int, sizes: tuple[int, ...] | None, count: int | None) -> Call | None:
    if (sizes is None) == (count is None):
        return None
    parts = None if sizes is None else np.array(sizes)
    return call(
        "Split", 18, d.floats(4, 4), parts, outputs=count or 2, axis=axis, num_outputs=count
    )


SHAPES: dict[str, tuple[str, tuple[int, ...], Any]] = {
    **{f"Reshape {t}": ("Reshape", (2, 3, 4), t)
       for t in ((0, -1), (6, 4), (2, -1, 2), (0, 0, -1), (-1,))},
    **{f"Expand {t}": ("Expand", (2, 1), t) for t in ((2, 3), (4, 2, 3), (1, 1), (2, 1))},
    **{f"Tile {t}": ("Tile", (2, 3), t) for t in ((2, 1), (1, 3), (2, 0))},
    **{f"Unsqueeze {t}": ("Unsqueeze", (2, 3), t) for t in ((0,), (1, 3), (-1,), (0, -1))},
    **{f"Squeeze {t}": ("Squeeze", (1, 3, 1), t) for t in ((0,), (2,), (-1,), (0, 2), None)},
    **{f"CenterCropPad {t}": ("CenterCropPad", (4, 5), t) for t in ((2, 2), (5, 6), (3, 7))},
}  # fmt: skip


@family("onnx", ("1", ""), kind=tuple(SHAPES))
def shapes_of_inputs(d: Draw, kind: str) -> Call | None:
    op, shape, given = SHAPES[kind]
    return call(op, 18, d.floats(*shape), None if given is None else np.array(given))


@family("onnx", op=("Flatten", "Shape"), start=(None, 0, 1, -2), end=(None, -1, 1, 10))
def shapes(d: Draw, op: str, start: int | None, end: int | None) -> Call | None:
    if op == "Flatten":
        return None if end else call(op, 13, d.floats(2, 3, 4), axis=start)
    return call(op, 15, d.floats(2, 3, 4), start=start, end=end)


@family("onnx", ("1",), op=("Trilu", "EyeLike"), k=(None, 0, 1, -2, 5), upper=(0, 1),
        type=("f4", "i8", "?", "u1"))  # fmt: skip
def triangles(d: Draw, op: str, k: int | None, upper: int, type: str) -> Call | None:
    if op == "Trilu":
        place = None if k is None else np.array(k)
        return call(op, 14, d.of(type, 2, 3, 4), place, upper=upper)
    return None if type == "?" or upper else call(op, 22, d.of(type, 3, 4), k=k)


@family("onnx", ("012", ""), type=("f4", "i8"), ends=((0, 5, 1), (5, 0, -2), (1, 1, 1), (0, 7, 3)))
def ranges(d: Draw, type: str, ends: tuple[int, ...]) -> Call | None:
    return call("Range", 11, *(np.array(value, type) for value in ends))


@family("onnx", ("12",), axis=(0, 1, -1), type=("i4", "i8", "f4"))
def one_hots(d: Draw, axis: int, type: str) -> Call | None:
    x = np.array([[0, 2], [-1, 5]], type)
    return call("OneHot", 11, x, np.array([4]), np.array([0.5, 2], np.float32), axis=axis)


@family("onnx", sorted=(0, 1), axis=(None, 0, 1, -1), outputs=(1, 4))
def uniques(d: Draw, sorted: int, axis: int | None, outputs: int) -> Call | None:
    x = d.places(0, 3, 4, 2).astype(np.float32)
    return call("Unique", 11, x, outputs=outputs, sorted=sorted, axis=axis)


OTHERS: dict[str, Any] = {
    **{f"DepthToSpace {block} {mode}": ("DepthToSpace", (1, block * block * 2, 2, 3),
                                        {"blocksize": block, "mode": mode})
       for block in (2, 3) for mode in ("DCR", "CRD")},
    "SpaceToDepth": ("SpaceToDepth", (1, 2, 4, 6), {"blocksize": 2}),
    **{f"MeanVarianceNormalization {axes}": ("MeanVarianceNormalization", (2, 3, 4, 2),
                                             {"axes": list(axes)})
       for axes in ((0,), (1,), (0, 2), (0, 2, 3), (1, 3))},
    **{f"Transpose {perm}": ("Transpose", (2, 3, 4), {"perm": list(perm)})
       for perm in ((0, 1, 2), (2, 0, 1))},
}  # fmt: skip


@family("onnx", kind=tuple(OTHERS))
def rearrangements(d: Draw, kind: str) -> Call | None:
    op, shape, attributes = OTHERS[kind]
    return call(op, 13, d.floats(*shape), **attributes)


@family("onnx", ("12",), op=("QuantizeLinear", "DequantizeLinear"), axis=(0, 1, -1),
        zero=(None, "u1", "i1"))  # fmt: skip
def quantizations(d: Draw, op: str, axis: int, zero: str | None) -> Call | None:
    scales = np.array([0.1, 0.3, 0.2, 0.5], np.float32)[: (4, 3)[axis]]
    point = None if zero is None else np.arange(len(scales)).astype(zero)
    quantizes = op == "QuantizeLinear"
    x = d.floats(4, 3) * np.float32(20) if quantizes else d.of(zero or "u1", 4, 3, scale=20)
    return call(op, 13, x, scales, point, axis=axis)
