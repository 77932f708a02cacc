"""Inference: random numbers."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.inference.dims import known_integers, shape_in
from bridge.neutral.types import ANY, TensorType


@infers("RandomNormal", "RandomUniform")
def of_shape(node: Node) -> list[TensorType]:
    return [TensorType(node.attributes["dtype"], tuple(node.attributes["shape"]))]


@infers("RandomNormalLike", "RandomUniformLike", "Bernoulli")
def like(node: Node) -> list[TensorType]:
    x = first(node)
    return [TensorType(node.attributes.get("dtype") or x.element, x.shape)]


@infers("ir::RandomUniform")
def ir_uniform(node: Node) -> list[TensorType]:
    return [TensorType(node.attributes["output_type"], shape_in(node.input(0)))]


@infers("Multinomial")
def multinomial(node: Node) -> list[TensorType]:
    shape = first(node).shape
    batch = ANY if shape is None else shape[0]
    return [TensorType(node.attributes["dtype"], (batch, node.attributes["sample_size"]))]


@infers("ir::Multinomial")
def ir_multinomial(node: Node) -> list[TensorType]:
    shape = first(node).shape
    batch = ANY if shape is None else shape[0]
    count = known_integers(node.input(1))
    return [TensorType(node.attributes["convert_type"], (batch, count[0] if count else ANY))]
