"""RotaryEmbedding: the halves of a head, each by a cosine and the other by a sine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes, known_integers
from bridge.neutral.types import ANY, F16, F32
from bridge.passes.fuse.uses import Uses, either_way, is_number


@dataclass(frozen=True)
class _Product:
    """A half (0 or 1) of what `split` cuts in two, by a table."""

    split: Node
    half: int
    table: Value


@dataclass(frozen=True)
class _Rotation:
    """`x`, of which the first `width` elements (0: all) are turned; `first` is the node of its
    halves."""

    x: Value
    cos: Value
    sin: Value
    first: Node
    width: int = 0


def rotary_embedding(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Over [batch, heads, length, size], by tables [batch, length, half], perhaps taken by place
    from longer ones."""
    if b.target is None or b.target.opset < 23:
        return None
    found = _rotation(node, uses) or _partial(node, uses)
    if found is None or found.x.rank != 4 or found.x.element not in (F32, F16):
        return None
    if not all(_fits(table, found.x) for table in (found.cos, found.sin)):
        return None
    tables = _by_place(found.cos, found.sin) or [found.cos, found.sin]
    b.name = found.first.name
    return b.op("RotaryEmbedding", found.x, *tables, rotary_embedding_dim=found.width)


def _fits(table: Value, x: Value) -> bool:
    """Whether a table is as long as x, for each of its batch; ONNX broadcasts neither."""
    if table.rank != 3 or table.element is not x.element or ANY in table.dims[:2]:
        return False
    return table.dims[:2] == (x.dims[0], x.dims[2])


def _partial(node: Node, uses: Uses) -> _Rotation | None:
    """A rotation of the first elements, joined with the others."""
    if len(node.inputs) != 2 or not _is_last(node):
        return None
    inner = uses.single_use(node.inputs[0], "Concat")
    found = _rotation(inner, uses) if inner is not None else None
    cut = uses.single_use(found.x, "Split") if found is not None else None
    if found is None or cut is None or not _is_last(cut) or cut.inputs[0] is None:
        return None
    width = found.x.dims[-1]
    if cut.outputs != [found.x, node.inputs[1]] or not isinstance(width, int):
        return None
    return replace(found, x=cut.inputs[0], width=width)


def _rotation(node: Node, uses: Uses) -> _Rotation | None:
    """[first · cos - second · sin, second · cos + first · sin]."""
    if len(node.inputs) != 2 or not _is_last(node):
        return None
    terms = _difference(node.inputs[0], uses), _sum(node.inputs[1], uses)
    if terms[0] is None or terms[1] is None:
        return None
    (plus, minus), added = terms[0], sorted(terms[1], key=lambda term: -term.half)
    if [t.half for t in (plus, minus, *added)] != [0, 1, 1, 0]:
        return None
    if {t.split for t in (plus, minus, *added)} != {plus.split}:
        return None
    if added[0].table is not plus.table or added[1].table is not minus.table:
        return None
    x, cos, sin = plus.split.inputs[0], _lifted(plus.table), _lifted(minus.table)
    if x is None or cos is None or sin is None:
        return None
    return _Rotation(x, cos, sin, plus.split)


def _difference(value: Value | None, uses: Uses) -> tuple[_Product, _Product] | None:
    """A product less another, of which the negative may be added."""
    node = uses.single_use(value, "Add", "Sub")
    if node is None:
        return None
    pairs = [tuple(node.inputs)] if node.op == "Sub" else either_way(node)
    for first, second in pairs:
        if node.op == "Add":
            second = _negated(second, uses)
        plus, minus = _product(first, uses), _product(second, uses)
        if plus is not None and minus is not None:
            return plus, minus
    return None


def _negated(value: Value | None, uses: Uses) -> Value | None:
    """What a value is the negative of."""
    node = uses.single_use(value, "Mul", "Neg")
    if node is None or node.op == "Neg":
        return None if node is None else node.inputs[0]
    return next((inner for inner, by in either_way(node) if is_number(by, -1)), None)


def _sum(value: Value | None, uses: Uses) -> list[_Product] | None:
    node = uses.single_use(value, "Add")
    products = [_product(term, uses) for term in node.inputs] if node is not None else []
    found = [product for product in products if product is not None]
    return found if len(found) == 2 else None


def _product(value: Value | None, uses: Uses) -> _Product | None:
    """A half by a table."""
    node = uses.single_use(value, "Mul")
    for half, table in () if node is None else either_way(node):
        cut = half.producer
        if cut is None or cut.op != "Split" or not _is_last(cut) or len(cut.outputs) != 2:
            continue
        sizes = [output.dims[-1] for output in cut.outputs if output.rank]
        if len(sizes) == 2 and isinstance(sizes[0], int) and sizes[0] == sizes[1]:
            return _Product(cut, cut.outputs.index(half), table)
    return None


def _is_last(node: Node) -> bool:
    """Whether a node joins or cuts along the last axis."""
    rank = node.outputs[0].rank
    return bool(rank) and node.attributes["axis"] in (-1, (rank or 0) - 1)


def _lifted(table: Value) -> Value | None:
    """The table that is laid out for all heads."""
    node = table.producer
    if node is None or node.op != "Unsqueeze" or table.rank is None:
        return None
    return node.inputs[0] if known_axes(node.input(1), table.rank) == (1,) else None


def _by_place(*tables: Value) -> list[Value] | None:
    """The longer tables from which these are taken, and the places."""
    longer: list[Value] = []
    places: list[Value] = []
    for table in tables:
        node = table.producer
        if node is None or node.op != "Gather" or node.attributes.get("batch_dims"):
            return None
        source, place = node.inputs[:2]
        if source is None or place is None or source.rank != 2 or place.rank != 2:
            return None
        if known_integers(node.inputs[2]) != (0,):
            return None
        longer.append(source)
        places.append(place)
    return [*longer, places[0]] if places[0] is places[1] else None
