"""Quantisation that OpenVINO's integer kernels take.

QuantizeLinear is a division by the scale, a rounding, a sum with the zero point, and limits. Where
an integer kernel takes the integers, they become a FakeQuantize, which OpenVINO fuses into the
kernel. FakeQuantize computes the place between its limits in another way. So a number halfway
between two integers may go to the other one, and elsewhere the arithmetic stays.
"""

from collections.abc import Collection

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.extras import NodeExtras
from bridge.neutral.graph import Graph, Model, Node, Value, operand_of, producer_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.rewrite import Pattern, Result, Rewriter, ValueUses
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import Element
from bridge.passes.context import Context
from bridge.passes.dead import remove_dead_nodes
from bridge.vocabulary import has_trait

NARROW = 8
"""The widest element type for FakeQuantize. Its f32 arithmetic is not exact for more levels."""

WIDEST_RANK = 5
"""The highest rank of OpenVINO's FakeQuantize kernel."""

SCALING = frozenset({"Div", "Mul", "Sub"})
"""Operators that quantise and dequantise, with a constant."""

FAR = 200
"""The values to follow. Behind so many others, a kernel is assumed."""

X, SCALE, ZERO = var(), var(), var()
ROUNDED = op("Round", X / SCALE)
LIMITED = op("Clip", (ROUNDED + ZERO) | ROUNDED)


def use_fake_quantize(model: Model, context: Context) -> bool:
    """Writes FakeQuantize for QuantizeLinear, in place, where integer kernels take the result."""
    everywhere = wants_all(context)
    return fake_quantize(model.graph, everywhere, everywhere)


def wants_all(context: Context) -> bool:
    """Whether every known quantisation is for FakeQuantize. The NPU computes in f16, where the
    arithmetic is no better."""
    return context.options.get("device") == "NPU"


def fake_quantize(graph: Graph, outputs: bool, everywhere: bool = False) -> bool:
    """Rewrites a graph; whether it changed. With `outputs`, kernels take the outputs of the graph;
    `everywhere` writes each known quantisation so."""

    def rewritten(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        if "quantizes" not in (node.extras or {}):
            return None
        match = next(iter(LIMITED.matches(node.inputs[0], Found(), lambda value: 1)), None)
        if match is None:
            return None
        among = {*rewriter.graph.outputs} if outputs else set()
        if everywhere or meets_integer_kernel(match[X], node.outputs[0], rewriter.uses, among):
            return _faked(b, node, match)
        return None

    changed = Rewriter(graph).run(Pattern(rewritten, frozenset({"Cast"}), uses=True))
    if changed:
        remove_dead_nodes(graph)
    return changed


def _faked(b: Builder, node: Node, match: Found) -> Value | None:
    """The integers from a FakeQuantize. None if it has no such form."""
    x, element = match[X], node.attributes["to"]
    scale = known_of(match[SCALE]).reals
    zero: np.ndarray | None = np.zeros((), np.float32)
    if ZERO in match:
        zero = known_of(match[ZERO]).reals
    low, high = element.bounds
    if scale is None or zero is None or not (scale != 0).all():
        return None
    if not has_levels(x, element):
        return None
    ends = [scale * (np.float32(end) - zero) for end in (low, high)]
    y = b.op(
        "FakeQuantize", x, *(b.constant(np.asarray(end, np.float32)) for end in ends),
        float(low), float(high), levels=high - low + 1,
    )  # fmt: skip
    extras: NodeExtras = {**(node.extras or {})}
    if "provenance" in extras and extras["provenance"].op == "QuantizeLinear":
        del extras["provenance"]  # A pattern restores it.
    return b.node("Cast", [y], 1, node.attributes, extras=extras).outputs[0]


def has_levels(x: Value, element: Element) -> bool:
    """Whether OpenVINO has a FakeQuantize for a tensor and the type of the integers."""
    return element.bits <= NARROW and x.rank is not None and 0 < x.rank <= WIDEST_RANK


def meets_integer_kernel(
    x: Value, quantized: Value, uses: ValueUses, outputs: Collection[Value] = ()
) -> bool:
    """Whether a quantised value, or its result, meets an integer kernel. `quantized` are
    the integers, or the floats of them. Kernels take the values in `outputs`.

    Floats between other operators of the graph count, too: no number halfway between two integers
    comes from outside there, and one FakeQuantize takes less time."""
    if _is_sum(x):
        return True
    waiting, floats, computes = [quantized], set[Value](), False
    if quantized.element is not None and quantized.element.is_float:
        floats.add(quantized)
    for value in waiting:
        if value in outputs or len(waiting) > FAR:
            return True
        for user in uses.users(value):
            passes = has_trait(user.op, "passes_scale") or _shifts_or_scales(user, value)
            if value not in floats:
                passes = has_trait(user.op, "passes_scale") or user.op == "MaxPool"
            elif _computes(user, value):
                return True
            else:
                computes |= not passes and not has_trait(user.op, "recurrent")
            if passes and user.outputs[0] not in waiting:
                waiting += user.outputs
                element = user.outputs[0].element
                if element is not None and element.is_float:
                    floats.update(user.outputs)
    return computes and x.behind(*SCALING, traits=frozenset({"passes_scale"})).producer is not None


def _computes(node: Node, value: Value) -> bool:
    """Whether a node computes in integers. A recurrent layer takes no integers for weights."""
    if has_trait(node.op, "recurrent"):
        return value in node.inputs[:1]
    return has_trait(node.op, "low_precision") and not _shifts_or_scales(node, value)


def _shifts_or_scales(node: Node, value: Value) -> bool:
    """Whether a node quantises or dequantises a value, with a constant."""
    ops = SCALING | {"Add"} if producer_of(value, "Round") else SCALING
    return node.op in ops and any(map(_is_constant, node.inputs))


def _is_sum(value: Value) -> bool:
    """Whether a kernel adds products of integers, perhaps with a bias and an activation behind."""
    for _ in range(FAR):
        if product := producer_of(value, traits=frozenset({"adds_products"})):
            return any(map(_is_dequantized, product.inputs[:2]))
        fused = producer_of(value, traits=frozenset({"joins_kernel"}))
        data = [v for v in fused.inputs if v and not _is_constant(v)] if fused else []
        if not data:
            return False
        value = data[0]
    return False


def _is_dequantized(value: Value | None) -> bool:
    """Whether a value had 8 bits or fewer before it was scaled."""
    for _ in range(FAR):
        if producer_of(value, "DequantizeLinear", "FakeQuantize", "QuantizeDequantize"):
            return True
        value = operand_of(value, *SCALING, traits=frozenset({"passes_scale"}))
        if value is None:
            return False
        if value.element is not None and value.element.is_integer and value.element.bits <= NARROW:
            return True
    return False


def _is_constant(value: Value | None) -> bool:
    return value is None or value.behind("Cast").constant is not None
