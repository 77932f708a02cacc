"""Short-time Fourier transforms: STFT of both formats, ISTFT of IR."""

from bridge.neutral.inference import constraints as must, infers_shape
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, Dim, Shape
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required


@infers_shape("STFT")
def shape_of_transform(node: Node, signal: tuple[Dim, ...]) -> Shape:
    """The shape [batch, frames, bins, 2] (ONNX, STFT-17)."""
    step, window, given = known_of(node.input(1)).ints, node.input(2), known_of(node.input(3)).ints
    size: Dim = ANY
    if given:
        size = given[0]
    elif window is not None and window.shape:
        size = window.shape[0]
    frames: Dim = ANY
    bins: Dim = ANY
    if isinstance(size, int):
        bins = size // 2 + 1 if node.attributes["onesided"] else size
        if step and step[0] > 0 and isinstance(signal[1], int):
            frames = (signal[1] - size) // step[0] + 1
    return (signal[0], frames, bins, 2)


@legalizes("STFT", target="ir")
def stft_to_ir(b: Builder, node: Node) -> Result:
    """STFT as STFT-15 for one-sided transforms of real signals, otherwise as a DFT of gathered
    frames."""
    signal, step, window, length = *required(node, 0, 1), node.input(2), node.input(3)
    if signal.rank is None:
        signal = b.reshape(signal, 0, 0, -1)
    if length is None:
        if window is None:
            raise Refused("it has neither a window nor a frame_length")
        length = b.sizes(window, 0)
    size = _number(b, length)
    if window is None:
        window = b.expand(b.like(1.0, signal), b.reshape(size, 1))
    real = signal.rank == 2 or signal.dims[-1] == 1
    if real and node.attributes["onesided"] and _is_fast(size):
        flat = b.squeeze(signal, 2) if signal.rank == 3 else signal
        return b.op("ir::STFT", flat, window, size, _number(b, step), transpose_frames=False)
    if signal.rank == 2:
        signal = b.unsqueeze(signal, 2)
    frames = _frames(b, signal, size, _number(b, step))
    shaped = frames * b.unsqueeze(window, 1)
    return b.op("DFT", shaped, None, 2, inverse=False, onesided=node.attributes["onesided"])


def _is_fast(size: Value) -> bool:
    """Whether a separate transform of each frame, as in STFT-15, is as fast as one transform of all
    frames. It is as fast if the length is a power of two, because no table is computed for such a
    length."""
    known = known_of(size).ints
    return known is not None and known[0].bit_count() == 1


def _number(b: Builder, x: Value) -> Value:
    """An integer scalar, or a vector of one element, as an i64 scalar."""
    return b.as_i64(b.scalar(x))


def _frames(b: Builder, signal: Value, size: Value, step: Value) -> Value:
    """The frames `[batch, frames, size, 1 or 2]` of a signal `[batch, length, 1 or 2]`."""
    room = b.reshape(b.sizes(signal, 1)) - size
    starts = b.op("Range", 0, room / step + 1, 1) * step
    inside = b.op("Range", 0, size, 1)
    return b.op("Gather", signal, b.unsqueeze(starts, 1) + inside, 1)


# Into ONNX --------------------------------------------------------------------------------------


@legalizes("ir::STFT", target="onnx")
def stft_to_onnx(b: Builder, node: Node) -> Result:
    """STFT of a signal [batch, length, 1]."""
    signal, window, size, step = required(node, 0, 1, 2, 3)
    single = b.known(signal.rank, "the rank of its signal") == 1
    size, step = _number(b, size), _number(b, step)
    batched = b.unsqueeze(signal, 0, 2) if single else b.unsqueeze(signal, 2)
    result = b.op("STFT", batched, step, _centred(b, window, size), size, onesided=True)
    if node.attributes["transpose_frames"]:
        result = b.transpose(result, 0, 2, 1, 3)
    return b.squeeze(result, 0) if single else result


def _centred(b: Builder, window: Value, size: Value) -> Value:
    """The window with zeros on both sides, up to `size` elements (STFT-15)."""
    known = known_of(size).ints
    if known is not None and window.shape == (known[0],):
        return window
    room = b.reshape(size, 1) - b.sizes(window, 0)
    left = room / [2]
    return b.concat(0, b.zeros(window, left), window, b.zeros(window, room - left))


@legalizes("ISTFT", target="onnx")
def istft_to_onnx(b: Builder, node: Node) -> Result:
    """ISTFT-16: the inverse DFT of every frame. The windowed, overlapping frames are added and
    divided by the sum of the squares of the windows, as in OpenVINO."""
    data, window, size, step, length = *required(node, 0, 1, 2, 3), node.input(4)
    rank = b.known(data.rank, "the rank of its data")
    size, step = _number(b, size), _number(b, step)
    batched = b.unsqueeze(data, 0) if rank == 3 else data
    # `[batch, bins, frames, 2]` to `[frames, size, batch]`
    spectrum = b.transpose(batched, 2, 1, 0, 3)
    frames = b.squeeze(b.op("DFT", spectrum, size, 1, inverse=True, onesided=True), 3)
    count = b.sizes(frames, 0)
    starts = b.positions(frames, 0) * step
    inside = b.op("Range", 0, size, 1)
    indices = b.reshape(b.unsqueeze(starts, 1) + inside, -1, 1)
    width = b.reshape(size, 1)
    gaps = (count - [1]) * b.reshape(step, 1)
    total = gaps + width

    def overlapped(parts: Value, columns: Value) -> Value:
        rows = b.reshape(parts, b.shape(-1, columns))
        return b.op("ScatterND", b.zeros(data, total, columns), indices, rows, reduction="add")

    columns = b.sizes(batched, 0)
    one = b.constant([1])
    shape_of_frame = b.unsqueeze(_centred(b, window, size), 1)
    weights = overlapped(b.expand(shape_of_frame * shape_of_frame, count, width, 1), one)
    sums = overlapped(frames * shape_of_frame, columns)
    if node.attributes["normalized"]:
        sums *= b.op("Sqrt", b.cast(size, data.element))
    covered = ~weights.equal(0)
    signal = b.where(covered, sums / b.where(covered, weights, 1), 0)
    start = width / [2]
    if node.attributes["center"]:
        signal = signal[start:total]
    if length is not None:
        wanted = b.reshape(_number(b, length), 1)
        signal = b.concat(0, signal, b.zeros(signal, wanted, columns))
        signal = signal[:wanted]
    elif node.attributes["center"]:
        signal = signal[:gaps]
    signal = b.transpose(signal, 1, 0)
    return b.squeeze(signal, 0) if data.rank == 3 else signal


def _positive(node: Node, step: int, length: int) -> must.Constraints:
    """The step between frames and the length of frames are positive."""
    for index, what in ((step, "step"), (length, "frame length")):
        known = known_of(node.input(index)).ints
        if known and min(known) < 1:
            yield f"its {what} is {known[0]}"


def frames(node: Node) -> must.Constraints:
    """STFT-17: the length of the frames is also the length of the window."""
    yield from _positive(node, 1, 3)
    window, length = must.Operand(node.input(2)), known_of(node.input(3)).ints
    if length:
        why = f"its window is {{}}, and its frame length {length[0]}"
        yield must.Same(window[0], length[0], why, window)


def frames_of_ir(node: Node) -> must.Constraints:
    """STFT-15 and ISTFT-16: the step and the length of the frames."""
    yield from _positive(node, 3, 2)


must.hold(("ir::STFT", "ISTFT"), frames_of_ir, must.one_element(2, 3))
must.hold("STFT", frames, must.has_rank(2, 3), must.has_rank(1, 1, of=2))
