"""What an input that holds places, axes or counts may be, as functions of sizes.

A row of `mappings/` says it under `indexes`; for an operator without a row `indexes` stands beside
its rule. The forms are in the docstring of `bridge.vocabulary`; without a row, inputs are numbers:

    indexes("com.microsoft::GatherBlockQuantized", {1: "0[0]"})

A check asks `index_range(node, position)` for each use of an input that it draws.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import load_operator
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import Dim
from bridge.vocabulary import Operator, operator

_ALONG = re.compile(r"(1\.\.)?(\w+)\[(-?\w+)\]")
_ONE_INPUT = re.compile(r"(axes of|axes before the last of|places in|under|bits of) (\w+)")

_beside_rules: dict[str, Mapping[int, str]] = {}


@dataclass(frozen=True)
class IndexRange:
    """From `least` to the smallest of `sizes` plus `more`. Places and axes count from the front: no
    negative one is in the range, though most operators take them."""

    least: int
    sizes: tuple[Dim, ...]
    more: int

    def bounds(self, size: Callable[[Dim], int]) -> tuple[int, int] | None:
        """The lowest and the highest number, if dimensions have the sizes that `size` says; None if
        no number is in range."""
        highest = min(map(size, self.sizes)) + self.more
        return (self.least, highest) if highest >= self.least else None


def indexes(op: str, forms: Mapping[int, str]) -> None:
    """Declares the indexes among the inputs of an operator without a row, by their positions."""
    if op in _beside_rules:
        raise ValueError(f"{op} has two declarations of its indexes")
    _beside_rules[op] = forms


def index_range(node: Node, position: int) -> IndexRange | None:
    """What the input at a position may be; None if it is no index, or if a rank, an axis or a
    number that decides it is not known."""
    row, form = operator(node.op), _form(node, position)
    if form is None:
        return None
    along, other = _ALONG.fullmatch(form), _ONE_INPUT.fullmatch(form)
    if along is not None:
        counts, of, axis = along.groups()
        size = _size(_operand(node, row, of), _axis(node, row, axis))
        return None if size is None else _up_to((size,), counts=bool(counts))
    if other is None:
        raise ValueError(f"mappings: {node.op}: no form of an index: {form}")
    words, of = other.groups()
    value = _operand(node, row, of)
    if value is None:
        return None
    if words == "under":
        known = known_of(value).ints
        return _up_to(known) if known is not None and len(known) == 1 else None
    if words == "bits of":
        # Engines compute 64 bits in 32: small numbers shall stay in these.
        bits = 0 if value.element is None else value.element.bits
        return _up_to((bits if bits <= 32 else 8,)) if bits else None
    if value.shape is None:
        return None
    if words.startswith("axes"):
        rank = max(len(value.shape), 1)
        return _up_to((rank,) if words == "axes of" else (rank - 1,))
    return _up_to(_indexed(node, value, node.inputs[position]))


def is_index(node: Node, position: int) -> bool:
    """Whether the input at a position has places, axes or counts."""
    return _form(node, position) is not None


def demanded(node: Node, position: int) -> str:
    """What an operator demands of the elements of an input: one of the values of a row; `fits`, of
    what is cast to integers; or ""."""
    row = operator(node.op)
    form = "" if row is None else row.values.get(position, "")
    made = node.outputs[0].element if node.op == "Cast" else None
    if made is not None and made.is_integer and made.bits < 64:
        return "fits"
    joined = form == "distinct" and node.attributes.get("reduction", "none") != "none"
    return "" if joined else form


def _form(node: Node, position: int) -> str | None:
    row = operator(node.op)
    if row is not None:
        return row.indexes.get(position)
    load_operator(node.op)
    return _beside_rules.get(node.op, {}).get(position)


def _up_to(sizes: tuple[Dim, ...], counts: bool = False) -> IndexRange | None:
    if not sizes:
        return None
    return IndexRange(1, sizes, 0) if counts else IndexRange(0, sizes, -1)


def _operand(node: Node, row: Operator | None, name: str) -> Value | None:
    """An input by name or position; the output by its name."""
    if name.isdigit():
        return node.input(int(name))
    assert row is not None
    if name in row.places:
        return node.input(row.places[name])
    return node.outputs[row.outputs.index(name)]


def _axis(node: Node, row: Operator | None, text: str) -> int | None:
    """An axis by number, or by the attribute or input that names it. An absent one is the first."""
    if text.lstrip("-").isdigit():
        return int(text)
    if row is None or text not in row.places:
        axis = node.attributes.get(text)
        return axis if isinstance(axis, int) else None
    value = node.input(row.places[text])
    known = known_of(value).ints
    if value is None:
        return 0
    return known[0] if known is not None and len(known) == 1 else None


def _size(value: Value | None, axis: int | None) -> Dim | None:
    shape = None if value is None else value.shape
    if shape is None or axis is None or not -len(shape) <= axis < len(shape):
        return None
    return shape[axis]


def _indexed(node: Node, data: Value, places: Value | None) -> tuple[Dim, ...]:
    """The sizes of the axes of data that a row of places names: behind those of the batch, as many
    as the row is long."""
    first = node.attributes.get("batch_dims", 0)
    length = _size(places, -1)
    return data.dims[first : first + length if isinstance(length, int) else None]
