"""Fourier transforms: DFT of ONNX; DFT, IDFT, RDFT and IRDFT of IR.

ONNX transforms one axis per node and keeps a last axis of size 1 (real) or 2 (complex). IR
transforms several axes. Its real signals have no such last axis, and its axes do not count it.
"""

from bridge.neutral.inference import constraints as must
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, F32, F64
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required

# Into IR ----------------------------------------------------------------------------------------


@legalizes("DFT", target="ir")
def dft_to_ir(b: Builder, node: Node) -> Result:
    """DFT as DFT or IDFT. With `onesided` it is RDFT, and with `onesided` and `inverse` it is
    IRDFT. IR has no transforms of f64."""
    x, length, axis_value = node.operand(0), node.input(1), node.input(2)
    if x.element is F64:
        y = b.op("DFT", b.cast(x, F32), *node.inputs[1:], **node.attributes)
        return b.cast(y, F64)
    known = (-2,) if axis_value is None else known_of(axis_value).ints
    real = _is_real(x)
    inverse, onesided = node.attributes["inverse"], node.attributes["onesided"]
    if known is None:
        if length is not None or onesided:
            raise Refused(
                "with onesided or a dft_length its axis must be a constant in OpenVINO IR"
            )
        return _along_computed_axis(b, x, required(node, 2)[0], inverse)
    axis = known[0]
    if axis < 0:  # IR does not count the axis of real and imaginary parts.
        axis += 1 if x.rank is None else x.rank
    if length is not None:
        length = b.as_i64(b.vector(length))
    if inverse and onesided:
        return b.unsqueeze(_real_inverse(b, _complex(b, x), axis, length), -1)
    if length is not None:
        x = _resized(b, x, axis, length)
    axes = b.constant([axis])
    if not onesided:
        return b.op("IDFT" if inverse else "ir::DFT", _complex(b, x), axes)
    if real:
        return b.op("RDFT", b.squeeze(x, -1), axes)
    place = known[0] if x.rank is None else axis
    half = b.sizes(x, place) / [2] + [1]
    return b.cut(b.op("ir::DFT", _complex(b, x), axes), place, 0, half)


def _along_computed_axis(b: Builder, x: Value, axis: Value, inverse: bool) -> Value:
    """The transform of a whole axis. The axis is known only at inference."""
    given = b.as_i64(b.vector(axis))
    # Negative axes count from the axis of real and imaginary parts, which IR does not count.
    axes = b.where(given < [0], given + b.constant([1]), given)
    return b.op("IDFT" if inverse else "ir::DFT", _complex(b, x), axes)


def _complex(b: Builder, x: Value) -> Value:
    """A signal with real and imaginary parts. If it is not known whether it has imaginary ones,
    zeros stand behind its parts, and the first two of all are taken."""
    if x.shape and x.shape[-1] == 2:
        return x
    parts = b.concat(-1, x, x - x)
    return parts if _is_real(x) else b.cut(parts, -1, 0, 2)


def _is_real(x: Value) -> bool:
    """Whether a signal surely has no imaginary parts."""
    return bool(x.shape) and x.dims[-1] == 1


def _resized(b: Builder, x: Value, axis: int, length: Value) -> Value:
    """`x` with zeros added or elements removed at the end of `axis`, so that it has `length`.

    It does not use signal_size, because zeros and slices have the same effect for all operators.
    """
    if x.rank is None:
        raise Refused("with a dft_length the rank of its input must be known; declare its shape")
    axis %= x.rank
    old, new = x.dims[axis], known_of(length).ints
    if new is not None and old == new[0]:
        return x
    grows = new is not None and isinstance(old, int) and old < new[0]
    if new is None or not isinstance(old, int) or grows:
        missing = b.max(length - b.sizes(x, axis), [0])
        dims = [missing if a == axis else b.sizes(x, a) for a in range(len(x.dims))]
        x = b.concat(axis, x, b.zeros(x, *dims))
        if grows:
            return x
    return b.cut(x, axis, 0, length)


def _real_inverse(b: Builder, x: Value, axis: int, length: Value | None) -> Value:
    """The real signal of half a spectrum, without the axis of real and imaginary parts. `length` is
    by default 2 * (bins - 1).

    IRDFT computes only the default length. For other lengths, this function computes the other half
    of the spectrum, because OpenVINO's IRDFT pads with uninitialised memory.
    """
    bins = x.dims[axis] if x.shape else ANY
    known = known_of(length).ints
    if length is None or (known is not None and isinstance(bins, int) and known[0] == 2 * bins - 2):
        return b.op("IRDFT", x, [axis])
    two, one = b.constant([2]), b.constant([1])
    first = _resized(b, x, axis, length / two + one)
    mirrored = b.flip(b.cut(first, axis, 1, length - length / two), axis)
    whole = b.concat(axis, first, mirrored * [1.0, -1.0])
    signal = b.op("IDFT", whole, [axis])
    return b.squeeze(b.cut(signal, -1, 0, 1), -1)


# Into ONNX --------------------------------------------------------------------------------------


@legalizes("IDFT", "IRDFT", "RDFT", "ir::DFT", target="onnx")
def transforms_to_onnx(b: Builder, node: Node) -> Result:
    """ir::DFT-7, IDFT-7, RDFT-9 and IRDFT-9 as one DFT for each axis. For a real signal, the last
    axis is one-sided. A forward transform begins with this axis, and an inverse transform ends with
    it."""
    x, axes = required(node, 0, 1)
    inverse, whole = node.op in ("IDFT", "IRDFT"), node.op in ("IDFT", "ir::DFT")
    if whole and known_of(axes).ints is None and axes.shape == (1,) and node.input(2) is None:
        given = b.as_i64(b.scalar(axes))
        return b.op("DFT", x, None, b.where(given < 0, given - 1, given), inverse=inverse)
    steps = _steps(b, node, x, complex=node.op != "RDFT")
    if node.op == "RDFT":
        x, steps = b.unsqueeze(x, -1), [steps[-1], *steps[:-1]]
    half = {"RDFT": 0, "IRDFT": len(steps) - 1}.get(node.op)
    for index, (position, length) in enumerate(steps):
        if index == half and inverse and length is not None:
            # Runtimes read the bins of this length, no more and no fewer.
            x = _resized(b, x, position, b.vector(length) / [2] + [1])
        x = b.op("DFT", x, length, position, inverse=inverse, onesided=index == half)
    return b.squeeze(x, -1) if node.op == "IRDFT" else x


def _steps(b: Builder, node: Node, x: Value, complex: bool) -> list[tuple[int, Value | None]]:
    """IR's axes and sizes as ONNX's axis and dft_length. None means the length of the signal."""
    axes = b.constants(node.input(1), "its axes")
    sizes_value = node.input(2)
    known = known_of(sizes_value).ints
    result: list[tuple[int, Value | None]] = []
    for index, axis in enumerate(axes):
        length = None
        if known is not None and known[index] != -1:
            length = b.constant(known[index])
        elif known is None and sizes_value is not None:
            length = _length(b, node, x, axis - 1 if complex and axis < 0 else axis, index)
        # In ONNX, negative axes count from the axis of real and imaginary parts.
        result.append((axis - 1 if axis < 0 else axis, length))
    return result


def _length(b: Builder, node: Node, x: Value, axis: int, index: int) -> Value:
    """Element `index` of signal_size, or the size of the axis if the element is -1."""
    given = b.op("Gather", b.as_i64(node.operand(2)), index, 0)
    whole = b.size(x, axis)
    if node.op == "IRDFT" and index == len(known_of(node.input(1)).ints or ()) - 1:
        whole = (whole - 1) * 2
    return b.where(given.equal(-1), whole, given)


must.hold(("IDFT", "IRDFT", "RDFT", "ir::DFT"), must.axes_in(1))
