"""Quantised operators, written in several: so that noise and wider floats come between them."""

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Model, Node
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.operators import Refused, legalization
from bridge.operators.standard import inline_standard_function

WITH_BOTH = ("QLinear", "QGemm", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM")
"""What operators are called that compute and round."""


def put_in_parts(model: Model, names: tuple[str, ...]) -> None:
    """Writes the operators whose names begin so in several, in place."""

    def ask(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        if not node.op.removeprefix("com.microsoft::").startswith(names):
            return None
        rule = legalization("ir", node.op)
        try:
            made = rule(b, node) if rule else inline_standard_function()(b, node, node.op)
        except Refused:
            return None
        b.nodes[:] = rewriter.rewritten(b.nodes, pattern)
        return made

    pattern = Pattern(ask, target=Target("ir"))
    Rewriter(model.graph).run(pattern)
