"""The kinds of faults. Each lists the changes that it could make to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.planted.places import Constant, Site

Change = tuple[str, Callable[[], None]]
"""What a fault does, in words, and the function that does it."""

KIN = {
    "operation": {
        "Add": "Sub", "Sub": "Add", "Mul": "Add", "Div": "Mul", "And": "Or", "Or": "And",
        "Min": "Max", "Max": "Min", "Relu": "Abs", "Sigmoid": "Tanh", "Tanh": "Sigmoid",
        "Sin": "Cos", "Exp": "Sigmoid", "Abs": "Relu", "Neg": "Abs", "Sqrt": "Abs",
    },
    "comparison": {
        "Greater": "GreaterEqual", "GreaterEqual": "Greater", "Less": "LessEqual",
        "LessEqual": "Less",
    },
    "reduction": {
        "ReduceSum": "ReduceMean", "ReduceMean": "ReduceSum", "ReduceMax": "ReduceMin",
        "ReduceMin": "ReduceMax", "MaxPool": "AveragePool", "ReduceProd": "ReduceSum",
    },
    "rounding": {"Floor": "Ceil", "Ceil": "Floor", "Round": "Floor"},
}  # fmt: skip
"""Operators and what takes their place, by kind."""

WORDS = {
    "half_to_even": "half_away_from_zero", "half_away_from_zero": "half_to_even",
    "floor": "ceil", "ceil": "floor", "forward": "reverse", "reverse": "forward", "max": "min",
    "min": "max", "ERF": "TANH", "TANH": "ERF", "none": "tanh", "corner": "center",
    "center": "corner", "half_pixel": "asymmetric", "pytorch_half_pixel": "half_pixel",
    "align_corners": "half_pixel", "asymmetric": "half_pixel", "round_prefer_floor": "ceil",
    "constant": "edge", "edge": "reflect", "reflect": "symmetric", "zeros": "border",
    "bilinear": "nearest", "linear": "nearest", "value": "index", "true": "false", "false": "true",
    "LINEAR": "CUBIC", "DCR": "CRD", "CRD": "DCR", "blocks_first": "depth_first",
    "depth_first": "blocks_first", "add": "mul", "sum": "prod",
}  # fmt: skip
"""Values of attributes that are words, and others."""

_FLAGS = {
    "exclude-pad",
    "count_include_pad",
    "largest",
    "reverse",
    "exclusive",
    "linear_before_reset",
    "transA",
    "transB",
    "center_point_box",
    "fmod",
    "select_last_index",
    "detect_negative",
    "sorted",
    "ceil_mode",
    "is_causal",
}
_UNTOUCHED = {"auto_broadcast", "element_type", "destination_type", "to", "output_type", "name"}


def _constants(file: Any, wanted: Callable[[Constant], bool], change: Any, what: str) -> Any:
    for one in file.constants():
        if one.array.size and wanted(one):

            def act(one: Constant = one) -> None:
                one.set(np.ascontiguousarray(change(one.array.copy())).astype(one.array.dtype))

            users = "/".join(one.users)
            yield f"{what} {list(one.array.shape)} of {users} ({one.where})", act


def _is_float(one: Constant | Site) -> bool:
    return (one.array if isinstance(one, Constant) else one).dtype.kind in "fV"


def constant(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    yield from _constants(
        file, lambda c: _is_float(c) and c.array.size <= 16, lambda a: a.astype(float) * 1.01,
        "1 % more in the constant",
    )  # fmt: skip


def half(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    yield from _constants(
        file, lambda c: _is_float(c) and c.array.size == 1, lambda a: a.astype(float) * 1.005,
        "0.5 % more in the constant",
    )  # fmt: skip


def row(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    def change(array: np.ndarray) -> np.ndarray:
        array[int(rng.integers(len(array)))] *= -1
        return array

    yield from _constants(
        file,
        lambda c: _is_float(c) and c.array.ndim == 2 and len(c.array) >= 20,
        change,
        "a row of",
    )


def weight(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    def change(array: np.ndarray) -> np.ndarray:
        at = int(rng.integers(array.size))
        flat = array.astype(float if _is_float_array(array) else array.dtype).reshape(-1)
        if flat.dtype.kind == "f":
            flat[at] = -flat[at] + 0.5 * flat.std()
        else:
            flat[at] = flat[at] ^ 64
        return flat.reshape(array.shape)

    yield from _constants(
        file, lambda c: c.array.size > 16 and c.array.dtype != np.int64, change, "one weight of"
    )


def _is_float_array(array: np.ndarray) -> bool:
    return array.dtype.kind in "fV"


def index(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    def change(array: np.ndarray) -> np.ndarray:
        at = int(rng.integers(array.size))
        array.reshape(-1)[at] += int(rng.choice([-1, 1]))
        return array

    yield from _constants(
        file, lambda c: c.array.dtype in (np.int64, np.int32), change, "one off in the integers"
    )


def transposed(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    def square(one: Constant) -> bool:
        shape = one.array.shape
        return len(shape) >= 2 and shape[-1] == shape[-2] > 1 and one.array.dtype != np.int64

    yield from _constants(file, square, lambda a: a.swapaxes(-1, -2), "transposed")


def attribute(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    for one in file.attributes():
        new = None if one.name in _UNTOUCHED else _other(one.name, one.value, rng)
        if new is not None:
            label = f"{one.op}'s {one.name} = {new} for {one.value} ({one.where})"
            yield label, lambda one=one, new=new: one.set(new)


def _other(name: str, value: str, rng: np.random.Generator) -> str | None:
    if value in WORDS:
        return WORDS[value]
    try:
        numbers = [float(part) for part in value.split(",")]
    except ValueError:
        return None
    if name in _FLAGS:
        return str(1 - int(value)) if value in ("0", "1") else None
    if all(part.strip("-").isdecimal() for part in value.split(",")):
        whole = [int(number) for number in numbers]
        if len(whole) > 1 and "pad" in name and rng.random() < 0.5:
            return ",".join(map(str, reversed(whole)))
        whole[int(rng.integers(len(whole)))] += int(rng.choice([-1, 1]))
        return ",".join(map(str, whole))
    return repr(numbers[0] * (100 if "eps" in name else 1.02)) if len(numbers) == 1 else None


def _kin(kind: str) -> Callable[[Any, Any], Iterator[Change]]:
    def changes(file: Any, rng: np.random.Generator) -> Iterator[Change]:
        for one in file.operators():
            new = KIN[kind].get(one.name)
            if new:
                yield f"{new} for {one.name} ({one.where})", lambda one=one, new=new: one.set(new)

    return changes


def branch(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    """Another operation or constant in a branch, or the branches of an If swapped."""
    yield from _swaps("branches")(file, rng)
    for changes in (_kin("operation"), _kin("comparison"), constant, weight, index):
        yield from (one for one in changes(file, rng) if one[0].endswith("(branch)"))
    yield from _inserted(
        file, lambda s: _is_float(s) and s.where == "branch" and s.place == "result",
        lambda b, x, t: b.node("Mul", [x, b.constant(t.type(1.1))]), "10 % more",
    )  # fmt: skip


def _swaps(kind: str) -> Callable[[Any, Any], Iterator[Change]]:
    def changes(file: Any, rng: np.random.Generator) -> Iterator[Change]:
        for number, one in enumerate(file.swaps()):
            if one.kind == kind:
                yield f"{kind} exchanged, the {number}th ({one.where})", one.swap

    return changes


def _inserted(file: Any, wanted: Callable[[Site], bool], change: Any, what: str) -> Any:
    for one in file.sites():
        if wanted(one):
            label = f"{what} at a value of {one.dtype}: {one.place} ({one.where})"
            yield label, lambda s=one: s.insert(lambda b, x: change(b, x, s.dtype))


def late(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    first = int(rng.choice([3, 4, 7, 9]))

    def change(b: Any, x: Any, dtype: np.dtype) -> Any:
        is_late = b.node("Greater", [b.iteration(), b.constant(np.array(first - 1, np.int64))])
        more = b.node("Add", [x, b.constant(dtype.type(1))])
        return b.node("Where", [is_late, more, x])

    yield from _inserted(
        file, lambda s: s.where == "loop" and s.dtype.kind in "if" and s.rank > 0, change,
        f"1 more from iteration {first} on",
    )  # fmt: skip


def last(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    axis = int(rng.choice([0, -1]))

    def change(b: Any, x: Any, dtype: np.dtype) -> Any:
        end = b.slice(x, -1, np.iinfo(np.int64).max, axis)
        end = b.node("Add", [end, b.constant(dtype.type(1))])
        return b.concat([b.slice(x, 0, -1, axis), end], axis, x)

    yield from _inserted(
        file, lambda s: s.rank > 0 and s.place == "result" and s.dtype.kind in "if", change,
        f"1 more in the last of axis {axis}",
    )  # fmt: skip


def tiny(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    def change(b: Any, x: Any, dtype: np.dtype) -> Any:
        positive = b.node("Abs", [x])
        small = b.node("Less", [positive, b.constant(dtype.type(1e-5))])
        return b.node("Where", [small, positive, x])

    yield from _inserted(file, _is_float, change, "the sign of tiny numbers lost")


def nan(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    def change(b: Any, x: Any, dtype: np.dtype) -> Any:
        return b.node("Where", [b.node("IsNaN", [x]), b.constant(dtype.type(0)), x])

    yield from _inserted(file, _is_float, change, "0 for NaN")


def minus_zero(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    def change(b: Any, x: Any, dtype: np.dtype) -> Any:
        zero = b.constant(dtype.type(0))
        return b.node("Where", [b.node("Equal", [x, zero]), zero, x])

    yield from _inserted(file, _is_float, change, "0 for -0")


def plus_one(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    limit = int(rng.choice([100, 1000, 30000, 2**31]))

    def change(b: Any, x: Any, dtype: np.dtype) -> Any:
        large = b.node("Greater", [x, b.constant(dtype.type(limit))])
        return b.node("Where", [large, b.node("Add", [x, b.constant(dtype.type(1))]), x])

    yield from _inserted(
        file, lambda s: s.dtype == np.int64 or (s.dtype == np.int32 and limit < 2**31), change,
        f"1 more above {limit}",
    )  # fmt: skip


def type_(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    """A narrower type on the way, from which each number comes back."""
    narrow = {
        np.dtype(np.int64): np.int32, np.dtype(np.int32): np.int16, np.dtype(np.uint8): np.int8,
        np.dtype(np.float32): np.float16, np.dtype(np.float64): np.float32,
        np.dtype(np.int8): np.uint8,
    }  # fmt: skip
    yield from _inserted(
        file, lambda s: s.dtype in narrow,
        lambda b, x, t: b.cast(b.cast(x, narrow[t]), t.type), "a narrower type",
    )  # fmt: skip


def clip(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    share = float(rng.choice([1.0, 1.5, 6.0, 100.0]))
    yield from _inserted(
        file, lambda s: s.dtype.kind in "iuf" and (s.dtype.kind != "i" or share > 1.5),
        lambda b, x, t: b.node("Min", [x, b.constant(t.type(share))]), f"cut off at {share}",
    )  # fmt: skip


def rare(file: Any, rng: np.random.Generator) -> Iterator[Change]:
    chosen = int(rng.choice([3, 5, 17, 77, 200]))

    def change(b: Any, x: Any, dtype: np.dtype) -> Any:
        hit = b.node("Equal", [x, b.constant(dtype.type(chosen))])
        return b.node("Where", [hit, b.constant(dtype.type(1)), x])

    yield from _inserted(file, lambda s: s.dtype.kind in "iu", change, f"1 for {chosen}")
    yield from _constants(
        file, lambda c: bool({"Equal", "NotEqual"} & set(c.users)) and c.array.size == 1,
        lambda a: a + 1, "1 more in the compared constant",
    )  # fmt: skip


KINDS: dict[str, Callable[[Any, Any], Iterator[Change]]] = {
    "constant": constant, "weight": weight, "index": index, "attribute": attribute,
    "branch": branch, "late iteration": late, "port map": _swaps("ports"), "type": type_,
    "last element": last, "tiny sign": tiny, "comparison": _kin("comparison"), "NaN": nan,
    "off by one": plus_one, "outputs swapped": _swaps("outputs"),
    "output dropped": _swaps("dropped"), "rounding": _kin("rounding"), "range": clip,
    "-0": minus_zero, "transposed": transposed, "reduction": _kin("reduction"),
    "operation": _kin("operation"), "operands": _swaps("operands"), "rare value": rare,
    "half a percent": half, "row": row,
}  # fmt: skip
"""The kinds of faults, by name."""
