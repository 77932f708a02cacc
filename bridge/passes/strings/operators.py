"""Rewrites operators on strings as operators on places in a vocabulary.

The place of a word is an integer from 0 on. The number of words stands for every other string. So
an operator that reads a string becomes a table with one row more than there are words.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import Facts
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.signs import MOST_NODES, NotNegative
from bridge.neutral.types import I64
from bridge.operators import Refused
from bridge.operators.ml.features import mapping
from bridge.passes.strings.vocabularies import Group, Vocabularies, default_word, listed

LABELS = {
    "ai.onnx.ml::LinearClassifier": "classlabels_ints",
    "ai.onnx.ml::SVMClassifier": "classlabels_ints",
    "ai.onnx.ml::TreeEnsembleClassifier": "classlabels_int64s",
}
"""The attribute that holds a classifier's integer labels."""


def lower_node(b: Builder, node: Node, vocabularies: Vocabularies) -> bool:
    """Rewrites a node whose strings have become places, in place, or appends new nodes for its
    outputs to `b`; returns whether it rewrote the node. Refused if neither is possible."""
    lower = LOWERED.get(node.op)
    return lower is not None and bool(lower(b, node, vocabularies))


def _classifier(b: Builder, node: Node, vocabularies: Vocabularies) -> None:
    """Its labels are their places."""
    group = vocabularies.lowered(node.outputs[0])
    if group is None:
        return
    words = node.attributes.get("classlabels_strings") or ()
    if len(words) < 2:
        raise Refused("it has a single label; which other string it gives, ONNX does not say")
    node.attributes["classlabels_strings"] = None
    node.attributes[LABELS[node.op]] = _places(group, words)


def _one_hot_encoder(b: Builder, node: Node, vocabularies: Vocabularies) -> None:
    """Its categories are their places."""
    group = vocabularies.lowered(node.inputs[0])
    if group is not None:
        words = node.attributes.get("cats_strings") or ()
        node.attributes["cats_strings"] = None
        node.attributes["cats_int64s"] = _places(group, words)


def _label_encoder(b: Builder, node: Node, vocabularies: Vocabularies) -> bool:
    """A table, if the keys are strings; values that are strings become their places."""
    keys = listed(node, "keys")
    results, words = vocabularies.lowered(node.outputs[0]), listed(node, "values")
    if results is not None and words is not None:
        default = results.words[default_word(node)]
        for name in ("values_strings", "values_tensor", "default_tensor"):
            node.attributes[name] = None
        node.attributes["values_int64s"] = _places(results, words)
        node.attributes["default_int64"] = default
    group = vocabularies.lowered(node.inputs[0])
    if group is None or keys is None:
        return False
    _, values, otherwise = mapping(node)
    if values is None:
        return False
    _look_up(b, node, group, keys, values, otherwise)
    return True


def _category_mapper(b: Builder, node: Node, vocabularies: Vocabularies) -> bool:
    """A table of the integers, or a LabelEncoder from these to places."""
    words = list(node.attributes.get("cats_strings") or ())
    numbers = np.array(node.attributes.get("cats_int64s") or (), np.int64)
    group = vocabularies.lowered(node.inputs[0])
    if group is not None:
        otherwise = np.array(node.attributes["default_int64"])
        _look_up(b, node, group, words, numbers, otherwise)
        return True
    results = vocabularies.lowered(node.outputs[0])
    if results is None:
        return False
    attributes = {
        "keys_int64s": tuple(numbers.tolist()),
        "values_int64s": _places(results, words),
        "default_int64": results.words[node.attributes["default_string"]],
    }
    b.node("ai.onnx.ml::LabelEncoder", node.inputs, node.outputs, attributes)
    return True


def _cast(b: Builder, node: Node, vocabularies: Vocabularies) -> bool:
    """A table of the numbers in the words. A word that is no number fails in ONNX and is 0 here. A
    Cast from integers becomes a LabelEncoder from the integers that are written like a word."""
    group, results = map(vocabularies.lowered, (node.inputs[0], node.outputs[0]))
    to = node.attributes["to"] if node.op == "Cast" else node.operand(1).element
    if group is not None and results is None and to is not None:
        numbers = np.array([_number(word, to.is_integer) for word in group.words])
        _look_up(b, node, group, list(group.words), numbers.astype(to.dtype), to.dtype.type(0))
    elif results is not None and group is None:
        numbered = [(_number(word, True), word) for word in results.words]
        known = {number: word for number, word in numbered if str(number) == word}
        whole = b.op("Cast", node.inputs[0], to=I64)
        attributes = {
            "keys_int64s": tuple(known) or (0,),
            "values_int64s": _places(results, known.values()) or (len(results.words),),
            "default_int64": len(results.words),
        }
        b.node("ai.onnx.ml::LabelEncoder", [whole], node.outputs, attributes)
    return (group is None) != (results is None)


def _gather(b: Builder, node: Node, vocabularies: Vocabularies) -> bool:
    """To pick from all words in order is to say their places."""
    data, indices = node.inputs[0], node.inputs[1]
    group = vocabularies.lowered(node.outputs[0])
    places = known_of(data).array
    if group is None or places is None or indices is None:
        return False
    if not Facts(_NotNegative(vocabularies), most=MOST_NODES).of(indices):
        return False
    if data is None or data.rank != 1 or not np.array_equal(places, np.arange(len(group.words))):
        return False
    b.node("Identity", [indices], node.outputs)
    return True


class _NotNegative(NotNegative):
    """Whether no element can be negative; places in a vocabulary never are."""

    def __init__(self, vocabularies: Vocabularies) -> None:
        self._vocabularies = vocabularies

    def settled(self, value: Value, fact: bool) -> bool:
        """Places count from 0."""
        return self._vocabularies.lowered(value) is not None or super().settled(value, fact)

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """Places along an axis count from 0, too."""
        if node.op in ("ArgMax", "ArgMin"):
            return [True]
        return [False, True] if node.op == "TopK" else super().transfer(node, facts)


def _look_up(
    b: Builder,
    node: Node,
    group: Group,
    keys: Sequence[str],
    values: np.ndarray,
    otherwise: np.ndarray,
) -> None:
    """The output is the value beside the key that equals the input."""
    table: Any = np.full(len(group.words) + 1, otherwise.reshape(()), values.dtype)
    found = dict(zip(reversed(keys), reversed(values.tolist()), strict=True))
    for word, value in found.items():
        table[group.words[word]] = value
    if np.array_equal(table, np.arange(len(table))) and table.dtype == np.int64:
        b.node("Identity", node.inputs, node.outputs)
    else:
        b.node("Gather", [b.constant(table), node.inputs[0], b.constant(0)], node.outputs)


def _places(group: Group, words: Iterable[str]) -> tuple[int, ...]:
    return tuple(group.words[word] for word in words)


def _number(word: str, whole: bool) -> int | float:
    try:
        return int(word) if whole else float(word)
    except ValueError:
        return 0


LOWERED: dict[str, Callable[[Builder, Node, Vocabularies], bool | None]] = {
    "ai.onnx.ml::LinearClassifier": _classifier,
    "ai.onnx.ml::SVMClassifier": _classifier,
    "ai.onnx.ml::TreeEnsembleClassifier": _classifier,
    "ai.onnx.ml::OneHotEncoder": _one_hot_encoder,
    "ai.onnx.ml::LabelEncoder": _label_encoder,
    "ai.onnx.ml::CategoryMapper": _category_mapper,
    **dict.fromkeys(("Cast", "CastLike"), _cast),
    "Gather": _gather,
}
"""The rules for operators on strings."""
