"""Ranks that nothing but the file gives: they are said, and written so that they hold or fail.

Where the length of a vector gives a rank, the vector gets the length of the declared rank: with
another length its Reshape fails.
"""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value, names_of_outputs
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.passes.context import Context
from bridge.passes.declared_ranks import TARGETS


def believe_ranks(model: Model, context: Context) -> bool:
    """Reports believed ranks, and makes them known, in place. Returns whether there was any."""
    values = [v for node in model.graph.walk() for v in node.outputs if v.believed]
    outputs = dict(zip(model.graph.outputs, names_of_outputs(model.graph), strict=True))
    for value in values:
        name, rank = outputs.get(value), f"has rank {value.rank}, as declared"
        context.report.believed.append(
            f'"{value.name}" {rank} for {value.producer!r}'
            if name is None
            else f'output "{name}" {rank}; `output_ranks` changes it'
        )
    if values:
        ops = frozenset({*TARGETS, "Squeeze", "Unsqueeze"})
        Rewriter(model.graph).run(Pattern(_known, ops, context.target))
    return bool(values)


def _known(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    (result,) = node.outputs
    if not result.believed or result.rank is None:
        return None
    if node.op == "Squeeze" and node.input(1) is None:
        return _squeezed(b, node.operand(0), result.rank)
    at = TARGETS.get(node.op, 1)
    vector = node.operand(at)
    if node.op == "Reshape":
        allowzero = node.attributes["allowzero"]
        return _reshaped(b, node.operand(0), vector, result.rank, allowzero)
    length = result.rank
    if node.op == "Expand" and node.operand(0).rank == length:
        # The shape may have fewer sizes than the data.
        fewer = b.max(b.constant([length]) - b.op("Shape", vector), [0])
        vector = b.concat(0, b.op("Expand", b.constant([1]), fewer), b.as_i64(vector))
    elif node.op in ("Squeeze", "Unsqueeze"):
        if node.operand(0).rank is None:
            return None
        length = abs(length - len(node.operand(0).dims))
    known = b.op("Reshape", vector, [length], allowzero=True)
    return b.op(node.op, *node.inputs[:at], known, **node.attributes)


def _squeezed(b: Builder, x: Value, rank: int) -> Value | None:
    """A Reshape to the sizes that are not 1. With axes of known size 1 alone, their rule does."""
    if x.rank is None or rank == sum(dim != 1 for dim in x.dims):
        return None
    dims = b.op("Shape", x)
    kept = b.op("Compress", dims, ~dims.equal(b.constant(1)), axis=0)
    return _reshaped(b, x, kept, rank, True)


def _reshaped(b: Builder, x: Value, sizes: Value, rank: int, allowzero: bool) -> Value:
    """A Reshape that fails if there is another number of sizes. OpenVINO looks at no target of less
    than two sizes, so it gets ones behind it."""
    if rank < 2:
        sizes = b.concat(0, b.as_i64(sizes), b.constant([1] * (2 - rank)))
    sizes = b.op("Reshape", sizes, [max(rank, 2)], allowzero=True)
    y = b.op("Reshape", x, sizes, allowzero=allowzero)
    return y if rank > 1 else b.op("Reshape", y, [-1] * rank)
