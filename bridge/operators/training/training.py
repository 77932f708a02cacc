"""Operators of ai.onnx.preview.training, written as arithmetic."""

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
        decay = b.cast(step, rate.element) * attributes["decay_factor"]
        adjusted = rate / (1 + decay)
        regular = _regularised(node, x, gradient)
        sums = squares + regular * regular
        divisor = b.op("Sqrt", sums) + attributes["epsilon"]
        news.append([x - adjusted * regular / divisor, sums])
    return _columns(news)


@legalizes(f"{DOMAIN}::Adam", target="ir")
def adam(b: Builder, node: Node) -> Result:
    """The update of Adam for each tensor."""
    rate, step, groups = _groups(node, 4)
    attributes = node.attributes
    alpha, beta = attributes["alpha"], attributes["beta"]
    time = b.cast(step, rate.element)
    first = time.equal(0)
    corrected = b.op("Sqrt", b.like(1, rate) - b.like(beta, rate) ** time)
    bias = b.like(1, rate) - b.like(alpha, rate) ** time
    # The first step needs no correction, and its divisor would be 0.
    bias = b.where(first, 1, bias)
    corrected = b.where(first, 1, corrected)
    adjusted = rate * corrected / bias
    news: list[list[Value]] = []
    for x, gradient, momentum, squares in groups:
        regular = _regularised(node, x, gradient)
        momentum = momentum * alpha + regular * (1 - alpha)
        power = regular * regular * (1 - beta)
        squares = squares * beta + power
        divisor = b.op("Sqrt", squares) + attributes["epsilon"]
        new = x - adjusted * (momentum / divisor)
        news.append([new * (1 - attributes["norm_coefficient_post"]), momentum, squares])
    return _columns(news)


@legalizes(f"{DOMAIN}::Momentum", target="ir")
def momentum(b: Builder, node: Node) -> Result:
    """The update of Momentum: stochastic gradient descent with momentum, standard or Nesterov's."""
    rate, step, groups = _groups(node, 3)
    attributes = node.attributes
    beta = b.like(attributes["beta"], rate)
    beta = b.where(step.equal(0), 1, beta)
    news: list[list[Value]] = []
    for x, gradient, velocity in groups:
        regular = _regularised(node, x, gradient)
        velocity = velocity * attributes["alpha"] + beta * regular
        change = velocity
        if attributes["mode"] == "nesterov":
            change = regular + velocity * attributes["alpha"]
        news.append([x - rate * change, velocity])
    return _columns(news)


@legalizes(f"{DOMAIN}::Gradient", target="ir")
def gradient(b: Builder, node: Node) -> NoReturn:
    """Refuses Gradient-1, because it differentiates the graph around it."""
    raise Refused("it differentiates the graph around it; export the model for inference")


def _groups(node: Node, size: int) -> tuple[Value, Value, list[list[Value]]]:
    """The learning rate, the step, and the `size` inputs of each tensor."""
    rate, step, *rest = node.operands
    count = len(rest) // size
    return rate, step, [rest[i::count] for i in range(count)]


def _columns(news: list[list[Value]]) -> list[Value]:
    """All first results, then all second results, and so on."""
    return [value for column in zip(*news, strict=True) for value in column]


def _regularised(node: Node, x: Value, gradient: Value) -> Value:
    coefficient: float = node.attributes["norm_coefficient"]
    return x * coefficient + gradient
