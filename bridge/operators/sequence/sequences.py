"""Type inference of operators on sequences."""

from functools import reduce
from typing import Any

from bridge.neutral.graph import operand_of, producer_of
from bridge.neutral.inference import first, infers, place
from bridge.neutral.inference.dims import with_dim
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import (
    ANY,
    UNKNOWN,
    Dim,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
    join,
)
from bridge.operators import Node, Value


def held(value: Value | None) -> Type:
    """The type of an input. For an optional, it is the type of its element."""
    type = UNKNOWN if value is None else value.type
    return type.item if isinstance(type, OptionalType) else type


def _item(node: Node) -> Type:
    """The type of the elements of the sequence in input 0."""
    type = held(node.input(0))
    return type.item if isinstance(type, SequenceType) else UNKNOWN


@infers("SequenceConstruct")
def infer_sequence_construct(node: Node) -> list[Type]:
    """SequenceConstruct: a sequence with the joined type of all inputs."""
    types: list[Any] = [value.type for value in node.operands]
    return [SequenceType(reduce(join, types))]


@infers("SequenceInsert")
def infer_sequence_insert(node: Node) -> list[Type]:
    """SequenceInsert: a sequence with the joined type of the old elements and the new one."""
    added = first(node, 1)
    if producer_of(node.inputs[0], "SequenceEmpty"):
        return [SequenceType(added)]
    return [SequenceType(join(_item(node), added))]


@infers("SequenceErase")
def infer_sequence_erase(node: Node) -> list[Type]:
    """SequenceErase: the same type of sequence."""
    return [SequenceType(_item(node))]


@infers("SequenceAt")
def infer_sequence_at(node: Node) -> list[Type]:
    """SequenceAt: the type of an element."""
    return [_item(node)]


def drops_axis(node: Node) -> bool:
    """Whether the parts of a SplitToSequence lack the axis. The standard ignores `keepdims` if
    `split` is given. onnxruntime applies `keepdims` to a scalar `split`, and PyTorch's exporter
    relies on this."""
    split = node.input(1)
    if node.attributes["keepdims"]:
        return False
    return split is None or (split.rank == 0 and known_of(split).ints == (1,))


@infers("SplitToSequence")
def infer_split_to_sequence(node: Node) -> list[Type]:
    """SplitToSequence: parts along `axis`. Parts of one element lack the axis if keepdims is 0."""
    whole, split = first(node), node.input(1)
    if whole.shape is None:
        return [SequenceType(TensorType(whole.element))]
    axis = place(node.attributes["axis"], len(whole.shape))
    if drops_axis(node):
        shape = whole.shape[:axis] + whole.shape[axis + 1 :]
    else:
        shape = with_dim(whole.shape, axis, _part(whole.shape[axis], split))
    return [SequenceType(TensorType(whole.element, shape))]


def _part(dim: Dim, split: Value | None) -> Dim:
    """The common size of the parts of an axis, if there is one."""
    if split is None:
        return 1
    sizes = _sizes(split)
    if split.rank != 0:
        return sizes.pop() if len(sizes) == 1 else ANY
    # The last part is smaller if the size of a part does not divide the axis.
    size = max(sizes, default=0)
    return size if size == 1 or (size and isinstance(dim, int) and dim % size == 0) else ANY


def _sizes(split: Value) -> set[int]:
    """The known sizes in `split`. Their number need not be known."""
    size = split.behind("Identity", "Cast")
    if zeros := producer_of(size, "ConstantOfShape"):
        filled = zeros.attributes.get("value")
        return {0 if filled is None else int(filled.array().item())}
    return set(known_of(operand_of(size, "Expand") or split).ints or ())
