"""AffineGrid: the coordinates of every point of an output after an affine map."""

from bridge.neutral.inference import infers
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, TensorType
from bridge.operators import Builder, Node, Value, legalizes, required


@legalizes("AffineGrid", target="ir")
def affine_grid_for_ir(b: Builder, node: Node) -> Value:
    """AffineGrid-20: theta `[N, k, k+1]` times (x, y, …, 1) for the points of `[H, W]` or `[D, H,
    W]`."""
    theta, size = required(node, 0, 1)
    rank = b.known(_rank(node), "the length of its size")
    size = b.as_i64(size)
    spatial = [size[axis] for axis in range(2, rank)]
    axes = len(spatial)
    whole = b.shape(*(b.reshape(count, 1) for count in spatial))
    columns = []
    # Coordinates are in the order from the last axis to the first: x belongs to W.
    for axis in reversed(range(axes)):
        steps = _steps(b, spatial[axis], theta, node.attributes["align_corners"])
        behind = axes - 1 - axis
        line = b.unsqueeze(steps, *range(1, behind + 1)) if behind else steps
        columns.append(b.unsqueeze(b.op("Expand", line, whole), -1))
    ones = b.op("Expand", b.like(1, theta), b.op("Shape", columns[0]))
    points = b.reshape(b.concat(-1, *columns, ones), -1, axes + 1)
    turned = b.op("Transpose", theta, [0, 2, 1])
    grid = b.op("MatMul", points, turned)
    batch = b.reshape(size[0], 1)
    return b.reshape(grid, batch, whole, axes)


def _rank(node: Node) -> int | None:
    """The number of axes of the result, which is that of the sizes; None if it is not known."""
    theta, size = required(node, 0, 1)
    space = theta.dims[1] if theta.rank == 3 else None
    return space + 2 if space in (2, 3) else known_of(size).length


@infers("AffineGrid")
def infer_affine_grid(node: Node) -> list[TensorType]:
    """AffineGrid-20: [N, H, W, 2] or [N, D, H, W, 3] for sizes [N, C, H, W] or [N, C, D, H, W]."""
    rank, sizes = _rank(node), known_of(node.input(1)).dims
    if rank is None:
        return [TensorType(node.operand(0).element)]
    dims = sizes if sizes is not None and len(sizes) == rank else (ANY,) * rank
    return [TensorType(node.operand(0).element, (dims[0], *dims[2:], rank - 2))]


def _steps(b: Builder, count: Value, theta: Value, align_corners: bool) -> Value:
    """The numbers from -1 to 1 in `count` steps, at the corners or at the middles of the cells."""
    number = b.op("Range", 0, count, 1)
    place, wide = b.cast(number, theta.element), b.cast(count, theta.element)
    two, one = b.like(2, theta), b.like(1, theta)
    if align_corners:
        steps = place * (two / (wide - one)) - one
        known = known_of(count).ints
        # The only one of one step is the last corner, as in onnxruntime.
        return steps if known and known[0] > 1 else b.where(wide.equal(one), one, steps)
    return (place * two + one) / wide - one
