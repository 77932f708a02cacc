"""Global pooling: reductions over all spatial axes."""

from bridge.operators import Builder, Node, Result, legalizes, ranks
from bridge.operators.nn.lp_pool import power_of, root_of


@legalizes("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", target="ir")
def global_pool_to_ir(b: Builder, node: Node) -> Result:
    """GlobalAveragePool, GlobalMaxPool, GlobalLpPool (1 to 22), which IR lacks, as reductions over
    the spatial axes."""
    data = node.operand(0)
    axes = b.constant(list(range(2, ranks(node, 0)[0])))
    if node.op == "GlobalLpPool":
        p = node.attributes["p"]
        return root_of(b, b.op("ReduceSum", power_of(b, data, p), axes), p)
    return b.op("ReduceMean" if node.op == "GlobalAveragePool" else "ReduceMax", data, axes)
