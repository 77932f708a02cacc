"""The outputs of the loops of `ir_first` by the specification (Loop-5, TensorIterator-1), in numpy.
OpenVINO's CPU plugin gets some of them wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tests.control_flow.program import Invalid

Sizes = Mapping[str, int]


def outputs(
    levels: Mapping[str, str], sliced: Sizes | None, stacked: Sizes | None, feed: Sequence[Any]
) -> list[np.ndarray]:
    """The outputs of the loop of these levels. Raises Invalid if it needs more slices than exist,
    which the specification leaves open."""
    x, w, *more = feed
    rest = iter(more)
    goes_on = bool(next(rest)) if levels["again"] == "captured" else True
    trips = _trips(levels["trips"], rest)
    going = bool(next(rest)) if levels["first"] == "input" else levels["first"] == "true"
    parts = None if sliced is None else list(_parts(x, sliced))
    if trips is None:
        trips = len(parts) if parts is not None else 1 << 30
    states = _initial(levels["states"], w, x)
    stack: list[np.ndarray] = []
    iteration = 0
    while going and iteration < trips:
        if parts is not None and iteration >= len(parts):
            raise Invalid
        small = (w if parts is None else parts[iteration]).sum(dtype=np.float32)
        if stacked is not None:
            total = small + np.float32(0.5) + (states[0].sum() if states else 0)
            stack.append(np.full((stacked["part_size"], 1), total, np.float32))
        states = _after(levels["states"], states, small, x)
        going = _again(levels["again"], iteration, states, goes_on)
        iteration += 1
    return [*states, *(() if stacked is None else (_joined(stack, stacked),))]


def _trips(level: str, rest: Iterator[Any]) -> int | None:
    if level == "absent":
        return None
    return int(np.ravel(next(rest))[0]) if level.startswith("input") else int(level)


def _parts(x: np.ndarray, sizes: Sizes) -> Iterator[np.ndarray]:
    axis, step, size = sizes["axis"], sizes["stride"], sizes["part_size"]
    start, end = (place % x.shape[axis] for place in (sizes["start"], sizes["end"]))
    first = range(start, end - size + 2, step) if step > 0 else range(start, end + size - 2, step)
    for place in first:
        yield np.take(x, range(place, place + size), axis)


def _joined(stack: Sequence[np.ndarray], sizes: Sizes) -> np.ndarray:
    if not stack:
        shape = [sizes["part_size"], 1]
        shape[sizes["axis"]] = 0
        return np.zeros(shape, np.float32)
    return np.concatenate(stack[:: 1 if sizes["stride"] > 0 else -1], sizes["axis"])


def _initial(kind: str, w: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    first = np.arange(2, dtype=np.float32).reshape(1, 2) - 3
    return {
        "none": [], "doubled": [w], "growing": [w], "exchanged": [w, first],
        "several types": [w, np.array(1, np.int64)],
    }[kind]  # fmt: skip


def _after(
    kind: str, states: list[np.ndarray], small: np.float32, x: np.ndarray
) -> list[np.ndarray]:
    match kind:
        case "doubled":
            return [states[0] + states[0] + abs(small)]
        case "exchanged":
            return [states[1] + small, states[0]]
        case "growing":
            row = np.array([[-1, 0]], np.float32) + abs(small)
            return [np.concatenate([states[0], row])]
        case "several types":
            return [np.abs(states[0]) + abs(small), np.asarray(states[1] * 3)]
    return []


def _again(kind: str, iteration: int, states: Sequence[np.ndarray], goes_on: bool) -> bool:
    match kind:
        case "by iteration":
            return iteration < 1
        case "by state":
            return bool(np.abs(states[0]).sum() < 40)
        case "captured":
            return goes_on
    return kind == "true"
