"""Einsum of both formats. In IR, the equation has no blanks, and a diagonal requires an arrow."""

import re

from bridge.neutral.inference import constraints as must
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, reads


def _is_identity(equation: str) -> bool:
    """Whether the one operand is the result: its labels differ, and the result has their order.
    Without an arrow, the result has the labels in the order of the alphabet."""
    term, arrow, result = equation.partition("->")
    labels = term.replace("...", "")
    if "," in term or len(set(labels)) < len(labels):
        return False
    if arrow:
        return term == result
    return list(labels) == sorted(labels) and (labels == term or term.startswith("..."))


@legalizes("Einsum", target="ir")
def einsum_to_ir(b: Builder, node: Node) -> Result:
    """Einsum (12 to 28): the equation without blanks. If a term repeats a label, the equation gets
    an arrow. Without an arrow, the result has the labels that occur once, in order."""
    equation = node.attributes["equation"].replace(" ", "")
    if _is_identity(equation):
        # An output among several does not stand for a value that changes nothing.
        return b.op("Identity", node.inputs[0])
    terms = equation.replace("...", "").split(",")
    if "->" not in equation and any(len(set(term)) < len(term) for term in terms):
        labels = "".join(terms)
        once = sorted(label for label in set(labels) if labels.count(label) == 1)
        equation += "->" + "..." * ("..." in equation) + "".join(once)
    if equation == node.attributes["equation"]:
        return None
    return b.op("Einsum", *node.inputs, equation=equation)


@legalizes("Einsum", target="onnx")
def einsum_to_onnx(b: Builder, node: Node) -> Result:
    """Einsum (12 to 28): makes every ellipsis stand for the same number of axes."""
    equation = node.attributes["equation"].replace(" ", "")
    inputs = node.operands
    aligned = _aligned(b, equation, inputs)
    return None if aligned == inputs else b.op("Einsum", *aligned, equation=equation)


def _aligned(b: Builder, equation: str, inputs: list[Value]) -> list[Value]:
    """The inputs with more axes of size 1 if their ellipsis stands for fewer axes than another
    one."""
    covered: dict[int, int] = {}
    starts: dict[int, int] = {}
    for index, term in enumerate(equation.split("->")[0].split(",")):
        before, dots, after = term.partition("...")
        if not dots:
            continue
        rank = inputs[index].rank
        if rank is None:
            return inputs
        covered[index] = rank - len(before) - len(after)
        starts[index] = len(before)
    most = max(covered.values(), default=0)
    return [
        x if covered.get(i, most) == most
        else b.unsqueeze(x, *range(starts[i], starts[i] + most - covered[i]))
        for i, x in enumerate(inputs)
    ]  # fmt: skip


_LABELS = re.compile(r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*")


@reads("Einsum", format="onnx")
@reads("Einsum", format="ir")
def read_einsum(b: Builder, node: Node) -> None:
    """Einsum: refuses an equation that is none; the standard's inference does not end with it."""
    equation = str(node.attributes.get("equation", "")).replace(" ", "")
    left, _, right = equation.partition("->")
    if not all(map(_LABELS.fullmatch, (*left.split(","), right))):
        raise Refused(
            f'its equation "{equation}" is none: a term has letters, and "..." once at most'
        )


def terms(node: Node) -> must.Constraints:
    """Einsum: a term of the equation for each input, with a label for each axis that no ellipsis
    covers. The result has no further labels."""
    equation = node.attributes["equation"].replace(" ", "")
    left, _, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(node.inputs):
        yield f'"{equation}" is for {len(terms)} inputs, and it has {len(node.inputs)}'
        return
    sizes: dict[str, int] = {}
    for term, x in zip(terms, must.operands(node, len(terms)), strict=True):
        before, ellipsis, after = term.partition("...")
        count = len(before + after)
        if not ellipsis:
            yield must.Rank(x, count, f'"{term}" are no axes of {{}}', x)
        if x.shape is None:
            continue
        if count > len(x.shape):
            yield f'"{term}" are no axes of {x}'
            return
        dims = (*x.shape[: len(before)], *x.shape[len(x.shape) - len(after) :])
        for label, dim in zip(before + after, dims, strict=True):
            if isinstance(dim, int) and dim != 1 and sizes.setdefault(label, dim) != dim:
                yield f"{must.Shapes(node.inputs)} differ in the size of {label}"
    if further := set(right) - set(left):
        yield f'"{equation}" makes {", ".join(sorted(further))} of nothing'


must.hold("Einsum", terms)
