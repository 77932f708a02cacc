"""Values of images between pixels."""

from collections.abc import Sequence
from itertools import product, starmap

from bridge.neutral.types import F32, I64
from bridge.operators import Builder, Value


def pixels(b: Builder, images: Value, channels: int | Value, cells: int = 1) -> Value:
    """The pixels [n, channels] of images [batch, channels * cells, height, width], in order of
    image, cell and row. Each element of the batch has `cells` images."""
    planes = b.reshape(images, -1, channels, cells, b.sizes(images, 2) * b.sizes(images, 3))
    return b.reshape(b.transpose(planes, 0, 2, 3, 1), -1, channels)


def sampled(
    b: Builder, images: Value, rows: Value, number: Value, places: Sequence[Value], margin: float
) -> tuple[Value, Value]:
    """Bilinear samples [..., channels] of images at the `places` along y and x, which are
    broadcast. `rows` are the pixels of all images, and `number` is the index of the image. Also a
    mask of the places in the image. A place up to `margin` outside has the value of the edge;
    farther outside it is 0."""
    sides, shares, inside = [], [], None
    for axis, place in zip((2, 3), places, strict=True):
        last = b.cast(b.sizes(images, axis) - [1], F32)
        near = (place >= -margin) & (place <= last + margin)
        inside = near if inside is None else inside & near
        place = b.min(b.max(place, 0.0), last)
        low = b.op("Floor", place)
        high = b.min(low + 1.0, last)
        share = place - low
        sides.append([b.cast(v, I64) for v in (low, high)])
        shares.append([1.0 - share, share])
    assert inside is not None
    height, width = b.sizes(images, 2), b.sizes(images, 3)
    start = number * height

    def corner(y: int, x: int) -> Value:
        part = b.op("Gather", rows, (start + sides[0][y]) * width + sides[1][x], 0)
        return part * b.unsqueeze(shares[0][y] * shares[1][x], -1)

    total = b.fold("Add", starmap(corner, product((0, 1), repeat=2)))
    return b.where(b.unsqueeze(inside, -1), total, 0.0), inside
