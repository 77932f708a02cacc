"""Inference: signal processing."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.inference.dims import known_integers
from bridge.neutral.types import ANY, Dim, TensorType


def _one(node: Node, index: int) -> int | None:
    """The single integer of an input, where it is known."""
    known = known_integers(node.input(index))
    return known[0] if known else None


def _half(dim: Dim) -> Dim:
    return dim // 2 + 1 if isinstance(dim, int) else ANY


def _double(dim: Dim) -> Dim:
    return 2 * (dim - 1) if isinstance(dim, int) else ANY


@infers("HannWindow", "HammingWindow", "BlackmanWindow")
def window(node: Node) -> list[TensorType]:
    size = _one(node, 0)
    return [TensorType(node.attributes["output_datatype"], (ANY if size is None else size,))]


@infers("MelWeightMatrix")
def mel(node: Node) -> list[TensorType]:
    bins, length = _one(node, 0), _one(node, 1)
    shape: tuple[Dim, ...] = (
        ANY if length is None else _half(length),
        ANY if bins is None else bins,
    )
    return [TensorType(node.attributes["output_datatype"], shape)]


@infers("DFT")
def onnx_dft(node: Node) -> list[TensorType]:
    """[..., signal, ..., 1 or 2] along one axis."""
    x = first(node)
    axis = -2 if node.input(2) is None else _one(node, 2)
    if x.shape is None or axis is None:
        return [TensorType(x.element, None if x.shape is None else (ANY,) * len(x.shape))]
    shape = list(x.shape)
    length = _one(node, 1)
    inverse, onesided = node.attributes["inverse"], node.attributes["onesided"]
    if node.input(1) is not None:
        size: Dim = ANY if length is None else length
    else:
        size = _double(shape[axis]) if inverse and onesided else shape[axis]
    shape[axis] = _half(size) if onesided and not inverse else size
    shape[-1] = 1 if inverse and onesided else 2
    return [TensorType(x.element, tuple(shape))]


def _transformed(node: Node, complex: bool) -> list[Dim] | None:
    """The signal's dimensions (without the one for real and imaginary part) after signal_size."""
    x = first(node)
    axes = known_integers(node.input(1))
    if x.shape is None:
        return None
    dims = list(x.shape[:-1] if complex else x.shape)
    if axes is None:
        return [ANY] * len(dims)
    sizes = known_integers(node.input(2))
    for index, axis in enumerate(axes):
        if node.input(2) is None or (sizes is not None and sizes[index] == -1):
            continue
        dims[axis] = sizes[index] if sizes is not None else ANY
    return dims


@infers("ir::DFT", "IDFT")
def ir_dft(node: Node) -> list[TensorType]:
    dims = _transformed(node, complex=True)
    return [TensorType(first(node).element, None if dims is None else (*dims, 2))]


@infers("RDFT")
def rdft(node: Node) -> list[TensorType]:
    dims, axes = _transformed(node, complex=False), known_integers(node.input(1))
    if dims is not None and axes:
        dims[axes[-1]] = _half(dims[axes[-1]])
    return [TensorType(first(node).element, None if dims is None else (*dims, 2))]


@infers("IRDFT")
def irdft(node: Node) -> list[TensorType]:
    dims, axes = _transformed(node, complex=True), known_integers(node.input(1))
    if dims is not None and axes:
        sizes = known_integers(node.input(2))
        if node.input(2) is None or (sizes is not None and sizes[-1] == -1):
            dims[axes[-1]] = _double(dims[axes[-1]])
    return [TensorType(first(node).element, None if dims is None else tuple(dims))]


def _frames(signal: Dim, size: int | None, step: int | None) -> Dim:
    if not isinstance(signal, int) or size is None or step is None:
        return ANY
    return (signal - size) // step + 1


@infers("STFT")
def onnx_stft(node: Node) -> list[TensorType]:
    """[batch, frames, bins, 2]."""
    x = first(node)
    size = _one(node, 3)
    if size is None and node.input(2) is not None:
        shape = first(node, 2).shape
        size = shape[0] if shape is not None and isinstance(shape[0], int) else None
    batch, signal = (ANY, ANY) if x.shape is None else x.shape[:2]
    bins: Dim = ANY if size is None else size
    if node.attributes["onesided"]:
        bins = _half(bins)
    return [TensorType(x.element, (batch, _frames(signal, size, _one(node, 1)), bins, 2))]


@infers("ir::STFT")
def ir_stft(node: Node) -> list[TensorType]:
    x = first(node)
    if x.shape is None:
        return [TensorType(x.element)]
    size = _one(node, 2)
    frames = _frames(x.shape[-1], size, _one(node, 3))
    bins = ANY if size is None else _half(size)
    middle = (bins, frames) if node.attributes["transpose_frames"] else (frames, bins)
    return [TensorType(x.element, (*x.shape[:-1], *middle, 2))]


@infers("ISTFT")
def istft(node: Node) -> list[TensorType]:
    x = first(node)
    if x.shape is None:
        return [TensorType(x.element)]
    length: Dim = ANY
    frames, size, step = x.shape[-2], _one(node, 2), _one(node, 3)
    if node.input(4) is not None:
        known = _one(node, 4)
        length = ANY if known is None else known
    elif isinstance(frames, int) and step is not None:
        if node.attributes["center"]:
            length = (frames - 1) * step
        elif size is not None:
            length = (frames - 1) * step + size
    return [TensorType(x.element, (*x.shape[:-3], length))]
