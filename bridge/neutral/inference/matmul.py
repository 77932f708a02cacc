"""Inference: matrix products and attention."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers, same
from bridge.neutral.types import ANY, Dim, Shape, TensorType, broadcast


def product(a: Shape, b: Shape) -> Shape:
    """The shape of a matrix product (numpy's matmul)."""
    if a is None or b is None:
        return None
    left = (1, *a) if len(a) == 1 else a
    right = (*b, 1) if len(b) == 1 else b
    batch = broadcast(left[:-2], right[:-2])
    if batch is None:
        return None
    rows = () if len(a) == 1 else (left[-2],)
    columns = () if len(b) == 1 else (right[-1],)
    return (*batch, *rows, *columns)


def swapped(shape: Shape, swap: bool) -> Shape:
    """A shape with its last two axes exchanged, where `swap` and it has two."""
    if not swap or shape is None or len(shape) < 2:
        return shape
    return (*shape[:-2], shape[-1], shape[-2])


@infers("MatMul")
def matmul(node: Node) -> list[TensorType]:
    a, b = first(node), first(node, 1)
    flags = node.attributes
    shape = product(
        swapped(a.shape, flags.get("transpose_a", False)),
        swapped(b.shape, flags.get("transpose_b", False)),
    )
    return [TensorType(a.element or b.element, shape)]


@infers("Gemm")
def gemm(node: Node) -> list[TensorType]:
    a, b = first(node), first(node, 1)
    left = swapped(a.shape, node.attributes["transA"])
    right = swapped(b.shape, node.attributes["transB"])
    shape = (left[0] if left else ANY, right[1] if right else ANY)
    return [TensorType(a.element or b.element, shape)]


@infers("Inverse")
def inverse(node: Node) -> list[TensorType]:
    return [first(node)]


@infers("Det")
def det(node: Node) -> list[TensorType]:
    x = first(node)
    return [TensorType(x.element, None if x.shape is None else x.shape[:-2])]


@infers("ScaledDotProductAttention")
def attention(node: Node) -> list[TensorType]:
    query, value = first(node), first(node, 2)
    if query.shape is None or value.shape is None:
        return [TensorType(query.element)]
    batch = broadcast(query.shape[:-2], first(node, 1).shape[:-2], value.shape[:-2])  # type: ignore[index]
    assert batch is not None
    return [TensorType(query.element, (*batch, query.shape[-2], value.shape[-1]))]


@infers("Einsum")
def einsum(node: Node) -> list[TensorType]:
    """Dimensions by label; labels of size 1 broadcast, an ellipsis broadcasts as numpy does."""
    element = first(node).element
    equation = node.attributes["equation"].replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    sizes: dict[str, Dim] = {}
    dots: tuple[Dim, ...] = ()
    for index, term in enumerate(terms):
        shape = first(node, index).shape
        before, ellipsis, after = term.partition("...")
        if shape is None:
            return [TensorType(element)]
        end = len(shape) - len(after)
        if ellipsis:
            joined = broadcast(dots, shape[len(before) : end])
            assert joined is not None
            dots = joined
        for label, dim in zip(before + after, (*shape[: len(before)], *shape[end:]), strict=True):
            known = sizes.get(label, 1)
            sizes[label] = dim if known == 1 or not isinstance(known, int) else known
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        right = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
        right = ("..." if "..." in left else "") + right
    before, ellipsis, after = right.partition("...")
    middle = dots if ellipsis else ()
    return [TensorType(element, (*(sizes[c] for c in before), *middle, *(sizes[c] for c in after)))]


infers("SwiGLU")(same)
