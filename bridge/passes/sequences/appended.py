"""Sequences to which each iteration of a Loop appends a tensor. They become stacks if all tensors
have one shape."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value, producer_of
from bridge.neutral.ports import Carried, Stacked, Yield
from bridge.neutral.rewrite import Pattern, Result, Rewriter, ValueUses
from bridge.neutral.types import SharedSymbol, TensorType
from bridge.operators.control.loop_builder import LoopBuilder


def stack_appended(graph: Graph) -> None:
    """Turns such sequences, in place, into the parts of their Loops' stacks."""
    Rewriter(graph).run(Pattern(_stacked, frozenset({"Loop"})))


def _stacked(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    loop_builder = LoopBuilder.of(node)
    body = loop_builder.body
    uses = ValueUses(body.graph)
    symbols = _symbols(node)
    states: set[Value] = set()
    for value, port in body.entries():
        initial = loop_builder.initial(port) if isinstance(port, Carried) else None
        if not isinstance(port, Carried) or not producer_of(initial, "SequenceEmpty"):
            continue
        again, exit = body.exit_of(port)
        insert = producer_of(again, "SequenceInsert")
        if not isinstance(exit, Yield) or exit.output is None or insert is None:
            continue
        if insert.inputs[0] is not value or insert.input(2):
            continue
        item = insert.inputs[1]
        if item is None or not uses.count(value) == uses.count(again) == 1:
            continue
        if _has_one_shape(item, symbols):
            body.graph.outputs[port.output] = item
            body.outputs[port.output] = Stacked(exit.output, keepdims=False)
            body.graph.nodes.remove(insert)
            loop_builder.after(exit.output, _parts)
            states.add(value)
    if not states:
        return None
    body.take_entries(lambda value, port: value in states)
    loop_builder.drop_unused_inputs()
    return loop_builder.build(b)


def _symbols(node: Node) -> set[object]:
    """The symbols of a Loop's inputs: they mean one size in all iterations. One that several inputs
    of the model share may mean several sizes."""
    tensors = (v for v in node.operands if isinstance(v.type, TensorType))
    dims = {dim for value in tensors for dim in value.shape or ()}
    return {dim for dim in dims if isinstance(dim, str) and not isinstance(dim, SharedSymbol)}


def _has_one_shape(item: Value, symbols: set[object]) -> bool:
    """Whether a value of the body has the same shape in all iterations, with no size 0. (In
    OpenVINO a stack without elements loses its number of rows.)"""
    return item.shape is not None and all(
        dim > 0 if isinstance(dim, int) else dim in symbols for dim in item.shape
    )


def _parts(b: Builder, stack: Value) -> Value:
    return b.op("SplitToSequence", stack, axis=0, keepdims=False)
