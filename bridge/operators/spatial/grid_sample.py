"""GridSample: samples of images at computed places."""

from itertools import product

from bridge.neutral.inference import constraints as must
from bridge.neutral.types import F32, I64
from bridge.operators import Builder, Node, Refused, Value, legalizes, ranks, required


@legalizes("GridSample", target="ir")
@legalizes("GridSample", target="onnx")
def grid_sample(b: Builder, node: Node) -> Value | None:
    """GridSample from the gathered corners around each place. IR's GridSample-9, and ONNX's before
    operator set 20, accept only images. ONNX has no GridSample before operator set 16."""
    x, grid = required(node, 0, 1)
    is_cubic = node.attributes["mode"] == "cubic"
    if b.opset >= 20 or (is_cubic and not b.is_for_ir):
        return None
    rank = ranks(node, 0)[0]
    if rank == 4 and (b.is_for_ir or b.opset >= 16):
        return None
    if rank < 3:
        raise Refused(f"its data has rank {rank}, without a spatial axis")
    if is_cubic:
        raise Refused(f"IR has cubic samples of images alone, but its data has rank {rank}")
    axes = range(2, rank)
    counts = [b.size(x, axis) for axis in axes]
    places = [
        # The last axis of the grid begins with x, which belongs to the last axis of the data.
        _place(b, b.op("Gather", grid, rank - 1 - axis, -1), count, node)
        for axis, count in zip(axes, counts, strict=True)
    ]
    pixels = b.reshape(x, 0, 0, -1)
    pixels = b.op("Transpose", pixels, [0, 2, 1])
    if node.attributes["mode"] == "nearest":
        nearest = [b.op("Round", place) for place in places]
        total = _pixels(b, pixels, nearest, counts, None, node)
    else:
        total = _corners(b, pixels, places, counts, node)
    channels_first = b.op("Transpose", total, [0, 2, 1])
    spatial = b.sizes(grid, *range(1, rank - 1))
    return b.op("Reshape", channels_first, b.concat(0, b.sizes(x, 0, 1), spatial))


def _corners(
    b: Builder, pixels: Value, places: list[Value], counts: list[Value], node: Node
) -> Value:
    """The weighted sum over the corners of the cell around each place."""
    floors = [b.op("Floor", place) for place in places]
    after = [place - floor for place, floor in zip(places, floors, strict=True)]
    one = b.constant(1.0)
    before = [one - part for part in after]

    def weighted(corner: tuple[int, ...]) -> Value:
        weight: Value | None = None
        at = []
        for axis, upper in enumerate(corner):
            at.append(floors[axis] + one if upper else floors[axis])
            part = after[axis] if upper else before[axis]
            weight = part if weight is None else weight * part
        return _pixels(b, pixels, at, counts, weight, node)

    return b.fold("Add", map(weighted, product((0, 1), repeat=len(places))))


def _place(b: Builder, normal: Value, count: Value, node: Node) -> Value:
    """A place from -1 … 1 as an index of an axis, in f32. It is reflected or clipped as the padding
    requires."""
    normal, wide, one = b.cast(normal, F32), b.cast(count, F32), b.constant(1.0)
    two, half = b.constant(2.0), b.constant(0.5)
    last = wide - one
    moved = normal + one
    if node.attributes["align_corners"]:
        place = moved / two * last
        low, high = b.constant(0.0), last
    else:
        place = (moved * wide - one) / two
        low, high = b.constant(-0.5), wide - half
    if node.attributes["padding_mode"] == "zeros":
        return place
    if node.attributes["padding_mode"] == "reflection":
        period = b.max((high - low) * two, 1e-6)
        off = abs(place - low)
        off -= b.op("Floor", off / period) * period
        place = low + b.min(off, period - off)
    return b.max(b.min(place, last), 0.0)


def _pixels(
    b: Builder,
    pixels: Value,
    at: list[Value],
    counts: list[Value],
    weight: Value | None,
    node: Node,
) -> Value:
    """The weighted pixels [batch, points, channels] at whole places, and zeros outside."""
    flat: Value | None = None
    inside: Value | None = None
    for place, count in zip(at, counts, strict=True):
        clipped = b.max(b.min(place, b.cast(count, F32) - 1.0), 0.0)
        here = place.equal(clipped)
        inside = here if inside is None else inside & here
        index = b.cast(clipped, I64)
        flat = index if flat is None else flat * count + index
    assert flat is not None and inside is not None
    sampled = b.op("GatherND", pixels, b.unsqueeze(b.reshape(flat, 0, -1), 2), batch_dims=1)
    if node.attributes["padding_mode"] == "zeros":
        sampled = b.where(b.reshape(inside, 0, -1, 1), sampled, 0)
    if weight is None:
        return sampled
    return sampled * b.cast(b.reshape(weight, 0, -1, 1), pixels.element)


def points(node: Node) -> must.Constraints:
    """GridSample: the grid has a point in space at each place, for each batch."""
    x, grid = must.operands(node, 2)
    why = "{} are no places in {}"
    yield must.Ranks(x, grid, 0, why, grid, x)
    if grid.rank is not None and x.rank is not None:
        yield must.Same(x[0], grid[0], why, grid, x)
        yield must.Same(grid[-1], x.rank - 2, why, grid, x)


must.hold("GridSample", must.has_rank(3), must.has_rank(3, of=1), points)
