"""Restores strings at the boundary of an ONNX model, if its IR came from one."""

from collections.abc import Sequence

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import I64, STRING, TensorType
from bridge.passes.context import Context
from bridge.records.boundary import VOCABULARIES, Label


def restore_strings(model: Model, context: Context) -> None:
    """Gives the model back, in place, the strings among its inputs and outputs that its metadata
    records."""
    record = VOCABULARIES.take(model.metadata)
    if record is None:
        return
    graph = model.graph
    front: list[Node] = []
    for name, words in record.inputs.items():
        index = next((i for i, value in enumerate(graph.inputs) if name in value.names), None)
        if index is None:
            raise VOCABULARIES.names_nothing(name)
        b = Builder(front, name, context.target)
        graph.inputs[index] = _places_of_words(b, graph.inputs[index], name, words)
    for name, words in record.outputs.items():
        if name not in graph.output_names:
            raise VOCABULARIES.names_nothing(name)
        index = graph.output_names.index(name)
        b = Builder(graph.nodes, name, context.target)
        graph.outputs[index] = _words_at_places(b, graph.outputs[index], words)
    graph.prepend(front)


def _places_of_words(b: Builder, places: Value, name: str, words: Sequence[Label]) -> Value:
    """A new input of strings; `places` becomes their places."""
    given = Value(TensorType(STRING, places.shape), [name])
    attributes = {
        "keys_strings": tuple(words),
        "values_int64s": tuple(range(len(words))),
        "default_int64": len(words),
    }
    places.names = [f"{name}.place"]
    element = places.element
    made = [places] if element is I64 else 1
    encoder = b.node("ai.onnx.ml::LabelEncoder", [given], made, attributes)
    if element is not I64:
        b.node("Cast", encoder.outputs, [places], {"to": element})
    return given


def _words_at_places(b: Builder, places: Value, words: Sequence[Label]) -> Value:
    """The strings that stand at some places."""
    if places.element is not I64:
        places = b.op("Cast", places, to=I64)
    array = np.array(words, dtype=object)
    made = b.op("Gather", b.tensor(Tensor.of(array)), places, 0)
    made.type = made.declared = TensorType(STRING, places.shape)
    return made
