"""What operators of the standard give where its reference or onnxruntime is wrong, by the texts of
their schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

Found = Sequence[np.ndarray]


def global_max_pool(x: np.ndarray) -> Found:
    return [x.max(tuple(range(2, x.ndim)), keepdims=True)]


def lrn(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Found:
    squares = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)])
    total = sum(squares[:, shift : shift + x.shape[1]] for shift in range(size))
    return [(x / (bias + alpha / size * total) ** beta).astype(x.dtype)]


Window = tuple[np.ndarray, np.ndarray, int]
"""The elements of a window of each channel, their places, and the number with those in the pads."""


def _pool(
    of: Callable[[Window], Sequence[np.ndarray]],
    x: np.ndarray,
    kernel_shape: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    auto_pad: bytes = b"NOTSET",
    ceil_mode: int = 0,
    storage_order: int = 0,
) -> Found:
    sizes, rank = x.shape[2:], len(kernel_shape)
    axes: list[list[tuple[list[int], int]]] = []
    for i, size in enumerate(sizes):
        stride, step = (*strides, *[1] * rank)[i], (*dilations, *[1] * rank)[i]
        begin, end = (pads[i], pads[i + rank]) if pads else (0, 0)
        reach = (kernel_shape[i] - 1) * step + 1
        if auto_pad.startswith(b"SAME"):
            count = -(-size // stride)
            total = max((count - 1) * stride + reach - size, 0)
            begin = (total + (auto_pad == b"SAME_LOWER")) // 2
            end = total - begin
        else:
            room = size + begin + end - reach
            count = (-(-room // stride) if ceil_mode else room // stride) + 1
            count -= (count - 1) * stride >= size + begin  # It would start in the padding.
        axes.append([])
        for start in range(-begin, count * stride - begin, stride):
            places = range(start, start + reach, step)
            inside = [place for place in places if 0 <= place < size]
            axes[-1].append((inside, sum(place < size + end for place in places)))
    numbers = np.arange(x.size).reshape(x.shape)
    if storage_order:
        plane = np.arange(int(np.prod(sizes))).reshape(sizes[::-1]).T
        numbers = numbers - numbers % plane.size + plane
    windows = []
    for parts in product(*axes):
        places = np.ix_(*map(range, x.shape[:2]), *(inside for inside, _ in parts))
        flat = (*x.shape[:2], -1)
        whole = int(np.prod([count for _, count in parts]))
        windows.append(of((x[places].reshape(flat), numbers[places].reshape(flat), whole)))
    shape = (*x.shape[:2], *map(len, axes))
    return [np.stack(each, -1).reshape(shape) for each in zip(*windows, strict=True)]


def _most(window: Window) -> Found:
    elements, numbers, _ = window
    first = elements.argmax(-1)[..., None]
    return [np.take_along_axis(each, first, -1)[..., 0] for each in (elements, numbers)]


max_pool = partial(_pool, _most)


def average_pool(x: np.ndarray, count_include_pad: int = 0, **attributes: Any) -> Found:
    def mean(window: Window) -> Found:
        elements, _, whole = window
        count = whole if count_include_pad else elements.shape[-1]
        return [elements.astype(np.float64).sum(-1) / count]

    return [y.astype(x.dtype) for y in _pool(mean, x, **attributes)]


def lp_pool(x: np.ndarray, p: int = 2, **attributes: Any) -> Found:
    def norm(window: Window) -> Found:
        return [(abs(window[0].astype(np.float64)) ** p).sum(-1) ** (1 / p)]

    return [y.astype(x.dtype) for y in _pool(norm, x, **attributes)]
