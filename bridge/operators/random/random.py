"""Random numbers. The formats have the same distributions but different generators, so that the
numbers differ.

A seed of ONNX becomes IR's `op_seed`. The value 0 of `op_seed` means another sequence every time.
"""

import math
import struct

import numpy as np

from bridge.neutral.graph import producer_of
from bridge.neutral.inference import constraints as must
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import F16, F32, F64, I32, I64, Element
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required

# Into IR ----------------------------------------------------------------------------------------


@legalizes("RandomUniform", "RandomUniformLike", target="ir")
def uniform_to_ir(b: Builder, node: Node) -> Result:
    """RandomUniform-8."""
    element = _element(node)
    attributes = node.attributes
    return uniform(b, node, _shape(b, node), attributes["low"], attributes["high"], element)


@legalizes("RandomNormal", "RandomNormalLike", target="ir")
def normal_to_ir(b: Builder, node: Node) -> Result:
    """RandomNormal (1 to 22) and RandomNormalLike (1 to 22): the Box-Muller transform of two
    uniform variables."""
    element = _element(node)
    dims = _shape(b, node)
    # The range starts above 0, so that the logarithm is finite.
    tiny = 2.0**-24
    radius = b.op("Log", uniform(b, node, dims, tiny, 1.0, F32))
    radius = b.op("Sqrt", radius * -2.0)
    angle = b.op("Cos", uniform(b, node, dims, 0.0, 2 * math.pi, F32, 1))
    scaled = radius * angle * float(node.attributes["scale"])
    return b.cast(scaled + float(node.attributes["mean"]), element)


@legalizes("Bernoulli", target="ir")
def bernoulli_to_ir(b: Builder, node: Node) -> Result:
    """Bernoulli (15 to 22): 1 if a uniform number is below the probability. The function body in
    the standard compares in the wrong direction."""
    x = node.operand(0)
    drawn = F64 if x.element is F64 else F32
    numbers = uniform(b, node, _shape(b, node), 0.0, 1.0, drawn)
    return b.cast(numbers < b.cast(x, drawn), _element(node))


@legalizes("Multinomial", target="ir")
def multinomial_to_ir(b: Builder, node: Node) -> Result:
    """Multinomial-13, with replacement, of log probabilities."""
    attributes = node.attributes
    return b.op(
        "ir::Multinomial",
        node.inputs[0],
        attributes["sample_size"],
        convert_type=attributes["dtype"],
        with_replacement=True,
        log_probs=True,
        op_seed=_seed(node),
    )


def uniform(
    b: Builder, node: Node, dims: Value, low: float, high: float, element: Element, stream: int = 0
) -> Value:
    """Uniform numbers from `low` to `high`. Several streams of one node are independent."""
    seed = _seed(node)
    return b.op(
        "ir::RandomUniform",
        dims,
        b.constant(low, element),
        b.constant(high, element),
        output_type=element,
        global_seed=stream if seed else 0,
        op_seed=seed,
    )


def _element(node: Node) -> Element:
    element = node.outputs[0].element
    if element is None:
        raise Refused("the element type of its input is unknown; set the attribute dtype")
    return element


def _shape(b: Builder, node: Node) -> Value:
    if node.inputs:
        return b.op("Shape", node.inputs[0])
    return b.constant(list(node.attributes["shape"]))


def _seed(node: Node) -> int:
    """ONNX's float seed as a positive number; 0 for an absent seed."""
    seed = node.attributes.get("seed")
    return 0 if seed is None else int.from_bytes(struct.pack("<f", seed), "little") + 1


# Into ONNX --------------------------------------------------------------------------------------


@legalizes("ir::RandomUniform", target="onnx")
def uniform_to_onnx(b: Builder, node: Node) -> Result:
    """RandomUniform, or RandomUniformLike for a computed shape. The numbers are from 0 to 1 and
    then scaled, unless the attributes can hold the bounds. Integers are rounded down."""
    dims, low, high = required(node, 0, 1, 2)
    element = node.attributes["output_type"]
    # A 32-bit float has too few digits for a range of integers.
    drawn = F64 if element in (I32, I64, F64) else F32
    attributes = _onnx_seed(node) | {"dtype": drawn}
    bounds = [array for v in (low, high) if (array := known_of(v).array) is not None]
    if said := drawn is F32 and [bound.size for bound in bounds] == [1, 1]:
        attributes["low"], attributes["high"] = (float(np.ravel(bound)[0]) for bound in bounds)
    known = known_of(dims).ints
    if known is not None:
        numbers = b.op("RandomUniform", shape=known, **attributes)
    else:
        numbers = b.op("RandomUniformLike", _of_shape(b, dims), **attributes)
    if said:
        return b.cast(numbers, element)
    first, last = (b.cast(b.reshape(v), drawn) for v in (low, high))
    scaled = numbers * (last - first) + first
    if element in (I32, I64):
        scaled = b.op("Floor", scaled)
    return b.cast(scaled, element)


def _of_shape(b: Builder, dims: Value) -> Value:
    """A value with these dimensions: the origin of the dimensions, or zeros."""
    shape = producer_of(dims.behind("Cast"), "Shape")
    if shape and not shape.attributes["start"] and shape.attributes.get("end") is None:
        x = shape.operand(0)
        if x.element in (F16, F32, F64):
            return x
    return b.op("Expand", b.constant(0.0), b.cast(dims, I64))


@legalizes("ir::Multinomial", target="onnx")
def multinomial_to_onnx(b: Builder, node: Node) -> Result:
    """Multinomial. Without replacement, it selects the classes with the largest sums of log
    probability and Gumbel noise, which has the same distribution."""
    probs, count = required(node, 0, 1)
    attributes = node.attributes
    logs = probs if attributes["log_probs"] else b.op("Log", probs)
    if not attributes["with_replacement"]:
        numbers = b.op("RandomUniformLike", logs, dtype=logs.element, **_onnx_seed(node))
        gumbel = -b.op("Log", -b.op("Log", numbers))
        keys = logs + gumbel
        k = b.cast(b.op("Reshape", count, b.shape(1)), I64)
        indices = b.ops("TopK", 2, keys, k, axis=1)[1]
        return b.cast(indices, attributes["convert_type"])
    (number,) = b.constants(count, "its num_samples")
    return b.op(
        "Multinomial",
        logs,
        sample_size=number,
        dtype=attributes["convert_type"],
        **_onnx_seed(node),
    )


def _onnx_seed(node: Node) -> dict[str, float]:
    seeds = node.attributes["global_seed"], node.attributes["op_seed"]
    return {"seed": float((seeds[0] * 31 + seeds[1]) % (1 << 24))} if any(seeds) else {}


def interval(node: Node) -> must.Constraints:
    """RandomUniform-8 of IR: the bounds of its numbers."""
    low, high = known_of(node.input(1)).array, known_of(node.input(2)).array
    if low is None or high is None or low.size != 1 or high.size != 1:
        return
    if not low.item() < high.item():
        yield f"nothing lies between {low.item()} and {high.item()}"


must.hold("ir::RandomUniform", must.one_element(1, 2), interval)
