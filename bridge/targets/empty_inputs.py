"""Inputs of size 0, which plugins take or refuse in their own ways.

OpenVINO's GPU plugin gives an input whose size is 0 one element, and then refuses the empty tensor.
The CPU plugin fails in some kernels without elements, or gives the numbers of an earlier call. Then
it also fails in the next call, and with one thread it says nothing of all this. A lower bound of
the input's size makes it refuse the input itself, and nothing else goes wrong.
"""

from collections.abc import Iterator

from bridge.neutral.graph import Model, Node, producer_of
from bridge.neutral.types import Dim, Interval, is_static, with_dims
from bridge.passes.context import Context
from bridge.passes.uses import Uses
from bridge.quirks.quirk import ELEMENTWISE
from bridge.vocabulary import has_trait

MAYBE, SOME = Interval(0, 1), Interval(1, None)


def open_empty_inputs(model: Model, context: Context) -> None:
    """Opens, in place, the sizes of 0 of all inputs."""
    for value in model.graph.inputs:
        if value.shape is not None and 0 in value.shape:
            value.type = with_dims(value.type, lambda dim: MAYBE if dim == 0 else dim)
            value.declared = value.type


def refuse_empty_inputs(model: Model, context: Context) -> bool:
    """Bounds, in place, the sizes of inputs that decide such a kernel outside of branches. The
    types keep the symbols; the declared types have the bounds."""
    uses = Uses(model.graph)
    needed = (dim for node in model.graph.nodes for dim in _needed(node, uses))
    sizes = {dim for dim in needed if isinstance(dim, str)}
    for value in model.graph.inputs if sizes else ():
        value.declared = with_dims(value.type, lambda dim: SOME if dim in sizes else dim)
    return False


def _needed(node: Node, uses: Uses) -> Iterator[Dim]:
    """The open sizes that must not be 0: the images of a pool, the steps of a recurrent layer, the
    keys of an attention, and the addends of an attention's product, or of one that OpenVINO joins
    with what is behind it."""
    first = node.input(0)
    if first is None or not first.rank:
        return
    if node.op in ("AvgPool", "MaxPool"):
        yield from first.dims[:1]
    elif has_trait(node.op, "recurrent") and node.op.endswith("Sequence"):
        yield from first.dims[1:2]
    elif node.op == "ScaledDotProductAttention" and node.operand(1).rank:
        size = node.operand(1).dims[-2]
        if size not in (node.outputs[0].shape or (size,)):
            yield size
    elif node.op == "MatMul":
        (result,) = node.outputs
        joined = any(user.op in ELEMENTWISE for user in uses.users(result))
        size = first.dims[-2 if node.attributes["transpose_a"] and first.rank > 1 else -1]
        # A known size of the other operand decides it.
        is_open = node.operand(1).rank != 1 and not is_static(node.operand(1).dims[-2:])
        is_wrong = is_open and (joined or producer_of(first, "Softmax") is not None)
        if is_wrong and size not in (result.shape or (size,)):
            yield size
