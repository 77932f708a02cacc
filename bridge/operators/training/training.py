"""Operators of ai.onnx.preview.training, as the arithmetic that they stand for."""

from __future__ import annotations

from typing import NoReturn

from bridge.operators import Builder, Node, Refused, Result, Value, legalizes

DOMAIN = "ai.onnx.preview.training"


@legalizes(f"{DOMAIN}::Adagrad", target="ir")
def adagrad(b: Builder, node: Node) -> Result:
    """The update of Adagrad for each tensor."""
    rate, step, groups = _groups(node, 3)
    attributes = node.attributes
    news: list[list[Value]] = []
    for x, gradient, squares in groups:
        decay = b.op("Mul", b.cast(step, rate.element), attributes["decay_factor"])
        adjusted = b.op("Div", rate, b.op("Add", 1, decay))
        regular = _regularised(b, node, x, gradient)
        sums = b.op("Add", squares, b.op("Mul", regular, regular))
        divisor = b.op("Add", b.op("Sqrt", sums), attributes["epsilon"])
        change = b.op("Div", b.op("Mul", adjusted, regular), divisor)
        news.append([b.op("Sub", x, change), sums])
    return _columns(news)


@legalizes(f"{DOMAIN}::Adam", target="ir")
def adam(b: Builder, node: Node) -> Result:
    """The update of Adam for each tensor."""
    rate, step, groups = _groups(node, 4)
    attributes = node.attributes
    alpha, beta = attributes["alpha"], attributes["beta"]
    time = b.cast(step, rate.element)
    first = b.op("Equal", time, 0)
    corrected = b.op("Sqrt", b.op("Sub", b.like(1, rate), b.op("Pow", b.like(beta, rate), time)))
    bias = b.op("Sub", b.like(1, rate), b.op("Pow", b.like(alpha, rate), time))
    # At the first step there is nothing to correct, and nothing to divide by.
    bias = b.op("Where", first, 1, bias)
    corrected = b.op("Where", first, 1, corrected)
    adjusted = b.op("Div", b.op("Mul", rate, corrected), bias)
    news: list[list[Value]] = []
    for x, gradient, momentum, squares in groups:
        regular = _regularised(b, node, x, gradient)
        momentum = b.op("Add", b.op("Mul", momentum, alpha), b.op("Mul", regular, 1 - alpha))
        power = b.op("Mul", b.op("Mul", regular, regular), 1 - beta)
        squares = b.op("Add", b.op("Mul", squares, beta), power)
        divisor = b.op("Add", b.op("Sqrt", squares), attributes["epsilon"])
        new = b.op("Sub", x, b.op("Mul", adjusted, b.op("Div", momentum, divisor)))
        news.append([b.op("Mul", new, 1 - attributes["norm_coefficient_post"]), momentum, squares])
    return _columns(news)


@legalizes(f"{DOMAIN}::Momentum", target="ir")
def momentum(b: Builder, node: Node) -> Result:
    """The update of stochastic gradient descent with momentum, standard or Nesterov's."""
    rate, step, groups = _groups(node, 3)
    attributes = node.attributes
    beta = b.like(attributes["beta"], rate)
    first = b.op("Equal", step, 0)
    beta = b.op("Where", first, 1, beta)
    news: list[list[Value]] = []
    for x, gradient, velocity in groups:
        regular = _regularised(b, node, x, gradient)
        past = b.op("Mul", velocity, attributes["alpha"])
        velocity = b.op("Add", past, b.op("Mul", beta, regular))
        change = velocity
        if attributes["mode"] == "nesterov":
            change = b.op("Add", regular, b.op("Mul", velocity, attributes["alpha"]))
        news.append([b.op("Sub", x, b.op("Mul", rate, change)), velocity])
    return _columns(news)


@legalizes(f"{DOMAIN}::Gradient", target="ir")
def gradient(b: Builder, node: Node) -> NoReturn:
    """Gradient-1: refused: it differentiates the graph around it."""
    raise Refused("it differentiates the graph around it; export the model for inference")


def _groups(node: Node, size: int) -> tuple[Value, Value, list[list[Value]]]:
    """Learning rate, step, and the `size` inputs that belong to each tensor."""
    rate, step, *rest = (v for v in node.inputs if v is not None)
    count = len(rest) // size
    return rate, step, [rest[i::count] for i in range(count)]


def _columns(news: list[list[Value]]) -> list[Value]:
    """All first results, then all second ones, ..."""
    return [value for column in zip(*news, strict=True) for value in column]


def _regularised(b: Builder, node: Node, x: Value, gradient: Value) -> Value:
    return b.op("Add", b.op("Mul", x, node.attributes["norm_coefficient"]), gradient)
