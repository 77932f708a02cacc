"""Operators of IR by attributes, built with OpenVINO's own interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.attributes.family import Call, Draw, call, family

AUTO_PADS = ("none", "both", "end", "same_upper", "same_lower", "valid")


def padded(pads: str, rank: int) -> dict[str, Any]:
    """The attributes of a way to pad."""
    first, last = {"both": (1, 1), "end": (0, 1)}.get(pads, (0, 0))
    auto = pads if pads.startswith(("same", "valid")) else "explicit"
    return {"pads_begin": [first] * rank, "pads_end": [last] * rank, "auto_pad": auto}


@family(
    "ir", ("3", "123"), begin=((1, 0), (-2, 3)), end=((3, -1), (100, 1), (0, 0)),
    step=((1, 1), (1, -1), (2, 2)), begin_mask=((0, 0), (1, 0)), end_mask=((0, 0), (0, 1)),
    mark=("", "new_axis 0", "new_axis 1", "shrink_axis 0", "shrink_axis 1", "ellipsis 0"),
)  # fmt: skip
def strided_slices(
    d: Draw, begin: tuple[int, ...], end: tuple[int, ...], step: tuple[int, ...],
    begin_mask: tuple[int, ...], end_mask: tuple[int, ...], mark: str,
) -> Call | None:  # fmt: skip
    masks = {f"{name}_mask": [0, 0] for name in ("new_axis", "shrink_axis", "ellipsis")}
    if mark:
        name, place = mark.split()
        masks[f"{name}_mask"][int(place)] = 1
    return call(
        "StridedSlice", 1, d.floats(3, 4, 5), *map(np.array, (begin, end, step)),
        begin_mask=list(begin_mask), end_mask=list(end_mask), **masks,
    )  # fmt: skip


@family(
    "ir", ("34", "1234"), start=(0, 1, -2, 9), end=(3, -1, 99, -99), step=(1, 2, -1), axis=(0, -1)
)
def slices(d: Draw, start: int, end: int, step: int, axis: int) -> Call | None:
    ends = [np.array([value]) for value in (start, end, step, axis)]
    return call("Slice", 8, d.floats(3, 4, 5), *ends)


@family(
    "ir", ("123",), mode=("nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow",
                               "bicubic_pillow"),
    by=("sizes", "scales"), version=(4, 11),
    coordinates=("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn",
                 "align_corners"),
    rounding=("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"),
    antialias=(False, True), pads=(0, 1), size=((7, 8), (3, 2), (9, 3)),
)  # fmt: skip
def interpolations(
    d: Draw, mode: str, by: str, version: int, coordinates: str, rounding: str, antialias: bool,
    pads: int, size: tuple[int, int],
) -> Call | None:  # fmt: skip
    if (mode != "nearest" and rounding != "round_prefer_floor") or (antialias and mode != "linear"):
        return None
    if mode.endswith("pillow") and (by, version, pads) != ("sizes", 11, 0):
        return None
    scales = (np.array(size) / np.array([5 + pads, 4 + pads])).astype(np.float32)
    given = (
        (np.array(size), scales)
        if version == 4
        else (scales if by == "scales" else np.array(size),)
    )
    return call(
        "Interpolate", version, d.floats(1, 2, 5, 4), *given, np.array([2, 3]), mode=mode,
        shape_calculation_mode=by, coordinate_transformation_mode=coordinates,
        nearest_mode=rounding, antialias=antialias, pads_begin=[0, 0, pads, 0],
        pads_end=[0, 0, 0, pads], cube_coeff=-0.5,
    )  # fmt: skip


@family(
    "ir", op=("AvgPool", "MaxPool"), size=((9,), (7, 8)), kernel=(2, 3), stride=(1, 2, 3),
    dilation=(1, 2), pads=AUTO_PADS, rounding=("floor", "ceil", "ceil_torch"), option=(0, 1),
)  # fmt: skip
def pools(
    d: Draw, op: str, size: tuple[int, ...], kernel: int, stride: int, dilation: int, pads: str,
    rounding: str, option: int,
) -> Call | None:  # fmt: skip
    rank = len(size)
    extra: dict[str, Any] = {"exclude_pad": bool(option)}
    if op == "MaxPool":
        extra = {"index_element_type": "i32" if option else "i64", "axis": 2 * option}
    return call(
        op, 16 if op == "AvgPool" else 14, d.floats(2, 2, *size),
        outputs=2 if op == "MaxPool" and option else 1, kernel=[kernel] * rank,
        strides=[stride] * rank, dilations=[dilation] * rank, rounding_type=rounding,
        **padded(pads, rank), **extra,
    )  # fmt: skip


@family(
    "ir", ("1", "12"), back=(0, 1), size=((5,), (5, 6)), stride=(1, 2, 3), dilation=(1, 2),
    kernel=(2, 3), pads=AUTO_PADS, group=(0, 2), output_padding=(0, 1), shaped=(0, 1),
)  # fmt: skip
def convolutions(
    d: Draw, back: int, size: tuple[int, ...], stride: int, dilation: int, kernel: int, pads: str,
    group: int, output_padding: int, shaped: int,
) -> Call | None:  # fmt: skip
    rank = len(size)
    channels = (4 // (group or 1), 3) if back else (3, 4 // (group or 1))
    weights = d.floats(*(group,) if group else (), *channels, *[kernel] * rank)
    shape = [np.array([side * stride + 1 for side in size])] if shaped else []
    if not back and (output_padding or shaped):
        return None
    more = {"output_padding": [output_padding] * rank} if back else {}
    return call(
        ("Group" if group else "") + "Convolution" + ("BackpropData" if back else ""), 1,
        d.floats(1, 4, *size), weights, *shape, strides=[stride] * rank,
        dilations=[dilation] * rank, **padded(pads, rank), **more,
    )  # fmt: skip


@family(
    "ir", ("1", ""),
    op=("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogicalAnd", "LogicalOr"),
    axes=((0,), (1, 2), (-1,), (), (0, 1, 2)), keep=(False, True), type=("f4", "i4", "i8", "u1"),
)  # fmt: skip
def reductions(d: Draw, op: str, axes: tuple[int, ...], keep: bool, type: str) -> Call | None:
    x = np.abs(d.of(type, 2, 3, 4))
    if op.startswith("Logical"):
        x = x > 3
    return call(f"Reduce{op}", 4 if op.startswith("L") and op[1] in "12" else 1, x,
                np.array(axes, np.int64), keep_dims=keep)  # fmt: skip


@family(
    "ir", ("1", ""), axis=(0, 1, -1), mode=("max", "min"), sort=("value", "index"), k=(1, 3),
    type=("f4", "i4"), index=("i32", "i64"), stable=(False, True),
)  # fmt: skip
def largest(
    d: Draw, axis: int, mode: str, sort: str, k: int, type: str, index: str, stable: bool
) -> Call | None:
    x = d.rng.permutation(36).reshape(3, 4, 3)
    x = (x // 4 if stable else x).astype(type)
    if stable and sort == "index":
        return None
    return call("TopK", 11, x, np.array(k), outputs=2, axis=axis, mode=mode, sort=sort,
                index_element_type=index, stable=stable)  # fmt: skip


@family("ir", ("12", "2"), batch=(0, 1), axis=(1, 2, -1), outside=(0, 1), version=(7, 8))
def gathers(d: Draw, batch: int, axis: int, outside: int, version: int) -> Call | None:
    if outside and version == 7:
        return None
    places = np.array([[5, -9], [1, 0]] if outside else [[0, 2], [1, 2]])
    if version == 8 and not outside:
        places[0, 1] = -1
    return call("Gather", version, d.floats(2, 3, 4), places, np.array(axis), batch_dims=batch)


@family(
    "ir", ("3", "13"), axis=(0, 1, -1), reduction=("none", "sum", "prod", "min", "max", "mean"),
    initial=(True, False), type=("f4", "i4"),
)  # fmt: skip
def scatters(d: Draw, axis: int, reduction: str, initial: bool, type: str) -> Call | None:
    sizes = (2, 3, 4)
    places = np.argsort(d.rng.random((2, 2, 3)), axis=axis) % sizes[axis]
    if reduction != "none":
        places %= 2
    return call(
        "ScatterElementsUpdate", 12, d.of(type, *sizes), places, d.of(type, 2, 2, 3),
        np.array(axis), reduction=reduction, use_init_val=initial,
    )  # fmt: skip


@family("ir", ("123", "3"), mode=("constant", "edge", "reflect", "symmetric"),
        pads=((0, 1, 1, 2), (1, -1, 0, 1), (0, -1, -1, -2), (0, 2, 1, 2)))  # fmt: skip
def paddings(d: Draw, mode: str, pads: tuple[int, ...]) -> Call | None:
    sides = np.array(pads[:2]), np.array(pads[2:])
    return call("Pad", 12, d.floats(3, 5), *sides, np.float32(1.5), pad_mode=mode)


@family(
    "ir", ("2345", "23456", "456", "3456"), op=("LSTM", "GRU", "RNN"), clip=(0.0, 0.4),
    direction=("forward", "reverse", "bidirectional"), lengths=((3, 3), (3, 1), (1, 3)),
    option=("", "activations", "linear_before_reset"),
)  # fmt: skip
def recurrent(
    d: Draw, op: str, clip: float, direction: str, lengths: tuple[int, int], option: str
) -> Call | None:
    ways, gates = 2 if direction == "bidirectional" else 1, {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    names = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}[op]
    before = option == "linear_before_reset"
    if before and op != "GRU":
        return None
    if option == "activations":
        names = ["relu", *names[1:]] if op == "RNN" else [names[0], "relu", *names[2:]]
    states = [d.floats(2, ways, 4) for _ in range(2 if op == "LSTM" else 1)]
    return call(
        f"{op}Sequence", 5, d.floats(2, 3, 3), *states, np.array(lengths, np.int32),
        d.floats(ways, gates * 4, 3) * 0.5, d.floats(ways, gates * 4, 4) * 0.5,
        d.floats(ways, (gates + before) * 4) * 0.3, outputs=1 + len(states), hidden_size=4,
        direction=direction, clip=clip, activations=names, activations_alpha=[],
        activations_beta=[], **{"linear_before_reset": before} if op == "GRU" else {},
    )  # fmt: skip


ARITHMETIC = ("Add", "Subtract", "Multiply", "Divide", "Mod", "FloorMod", "Power", "Maximum",
              "Minimum", "SquaredDifference", "Equal", "Greater", "LessEqual")  # fmt: skip


@family(
    "ir", ("", "1", "0"), op=ARITHMETIC, type=("f4", "i4", "i8", "u1"),
    floors=(None, True, False), shapes_of=("same", "row", "column"),
)  # fmt: skip
def arithmetic(d: Draw, op: str, type: str, floors: bool | None, shapes_of: str) -> Call | None:
    if (floors is None) != (op != "Divide"):
        return None
    shape = {"same": (2, 3), "row": (3,), "column": (2, 1)}[shapes_of]
    a, b = d.of(type, 2, 3, scale=10), d.of(type, *shape, scale=4)
    b = np.where(b == 0, np.array(3, type), b)
    if op == "Power":
        a, b = np.abs(a), np.abs(b) % np.array(3, type)
    return call(op, 1, a, b, auto_broadcast="numpy", m_pythondiv=floors)


@family(
    "ir", type=("f4", "i4", "u1", "i1", "?", "f2"),
    to=("f32", "f16", "i32", "i64", "u8", "i8", "boolean", "u32", "f64", "i16", "u16"),
)  # fmt: skip
def converts(d: Draw, type: str, to: str) -> Call | None:
    low = 3 if to[0] == "u" or type in ("u1", "?") else -2.7
    return call("Convert", 1, np.array([0, 1, 2.7, low, 100]).astype(type), destination_type=to)


FLAT: dict[str, tuple[str, int, dict[str, Any]]] = {
    "Elu": ("Elu", 1, {"alpha": 0.3}), "Swish": ("Swish", 4, {}), "HSwish": ("HSwish", 4, {}),
    "HSigmoid": ("HSigmoid", 5, {}), "Mish": ("Mish", 4, {}), "SoftPlus": ("SoftPlus", 4, {}),
    "SoftSign": ("SoftSign", 9, {}), "Sign": ("Sign", 1, {}), "Erf": ("Erf", 1, {}),
    "Floor": ("Floor", 1, {}), "Ceiling": ("Ceiling", 1, {}),
    **{f"Gelu {m}": ("Gelu", 7, {"approximation_mode": m}) for m in ("tanh", "erf")},
    **{f"Round {m}": ("Round", 5, {"mode": m}) for m in ("half_to_even", "half_away_from_zero")},
    **{f"Clamp {a}": ("Clamp", 1, {"min": a, "max": b}) for a, b in ((-0.5, 0.5), (0.0, 1e9))},
    **{f"Softmax {a}": ("Softmax", 8, {"axis": a}) for a in (0, -1)},
    **{f"LogSoftmax {a}": ("LogSoftmax", 5, {"axis": a}) for a in (0, -1)},
}  # fmt: skip


@family("ir", kind=tuple(FLAT), rank=(1, 2, 3))
def activations(d: Draw, kind: str, rank: int) -> Call | None:
    op, version, attributes = FLAT[kind]
    x = np.concatenate([d.floats(6) * 3, np.array([0.5, 1.5, -0.5, -2.5, 0, 7], np.float32)])
    return call(op, version, x.reshape((12, 1, 1)[:rank] if rank < 3 else (2, 3, 2)), **attributes)


ALONG_AXES: dict[str, tuple[str, int, dict[str, Any]]] = {
    **{f"NormalizeL2 {m}": ("NormalizeL2", 1, {"eps": 0.1, "eps_mode": m}) for m in ("add", "max")},
    **{f"MVN {v} {m}": ("MVN", 6, {"normalize_variance": v, "eps": 0.1, "eps_mode": m})
       for v in (True, False) for m in ("inside_sqrt", "outside_sqrt")},
    **{f"LRN {n}": ("LRN", 1, {"alpha": 0.5, "beta": 0.7, "bias": 1.0, "size": n})
       for n in (1, 2, 3)},
    **{f"CumSum {e} {r}": ("CumSum", 3, {"exclusive": e, "reverse": r})
       for e in (True, False) for r in (True, False)},
}  # fmt: skip


@family("ir", ("1",), kind=tuple(ALONG_AXES), axes=((1,), (1, 2), (2,), (-1,)), type=("f4", "i4"))
def along_axes(d: Draw, kind: str, axes: tuple[int, ...], type: str) -> Call | None:
    op, version, attributes = ALONG_AXES[kind]
    sums = op == "CumSum"
    if (sums and len(axes) > 1) or (type == "i4" and not sums):
        return None
    places = np.array(axes[0] if sums else axes)
    return call(op, version, d.of(type, 2, 3, 4), places, **attributes)


@family(
    "ir", ("", "1"), a=(False, True), b=(False, True),
    shapes_of=(((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,))),
)  # fmt: skip
def products(
    d: Draw, a: bool, b: bool, shapes_of: tuple[tuple[int, ...], tuple[int, ...]]
) -> Call | None:
    sides = [d.floats(*shape) for shape in shapes_of]
    swapped = [
        np.swapaxes(side, -1, -2).copy() if turn and side.ndim > 1 else side
        for side, turn in zip(sides, (a, b), strict=True)
    ]
    return call("MatMul", 1, *swapped, transpose_a=a, transpose_b=b)
