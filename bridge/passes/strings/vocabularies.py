"""The possible strings of each value of a model: one vocabulary for all values that meet.

Values meet if an operator passes strings on or compares them, and at the inputs and outputs of
bodies. Their vocabulary is every string that an operator or a constant among them names. A value is
open if it can be another string too, from an input of the model or from an operator that writes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeGuard

from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.ports import Carried, Iteration, Sliced, Stacked, Yield
from bridge.neutral.types import STRING
from bridge.vocabulary import traits_of


def is_string(value: Value | None) -> TypeGuard[Value]:
    """Whether a value is a tensor of strings."""
    return value is not None and value.element is STRING


def texts(value: Value) -> list[str] | None:
    """The strings of a constant, None for other values."""
    tensor = value.constant
    return None if tensor is None else [str(x) for x in tensor.array().reshape(-1)]


@dataclass(eq=False)
class Group:
    """Values that meet. `words` is their vocabulary: each word's place in it.

    `needed`: an operator does something with them that IR cannot do with strings. `text`: an
    operator needs to know more than which word each string is. `open`: a value is open.
    """

    values: list[Value] = field(default_factory=list)
    words: dict[str, int] = field(default_factory=dict)
    needed: bool = False
    text: bool = False
    open: bool = False

    def add(self, words: Iterable[str]) -> None:
        """Adds words behind the present ones."""
        for word in words:
            self.words.setdefault(word, len(self.words))

    @property
    def lowered(self) -> bool:
        """Whether its values become places in the vocabulary. A string that is only passed from an
        input to an output stays a string."""
        return not self.text and (self.needed or (bool(self.words) and not self.open))


class Vocabularies:
    """The groups of all strings of a graph and its bodies."""

    def __init__(self, graph: Graph) -> None:
        self._groups: dict[Value, Group] = {}
        self._flows: dict[Value, list[Value]] = {}
        self._closed: list[tuple[Value | None, ...]] = []
        self._given = [value for value in graph.inputs if is_string(value)]
        for value in self._given:
            self.of(value)
        for node in graph.walk():
            self._visit(node)
        self.open = self._reached(self._given)
        for value in self.open:
            self.of(value).open = True
        for values in self._closed:
            strings = [value for value in values if value is not None]
            if all(value in self.open for value in strings):
                self.of(strings[0]).text = True

    def of(self, value: Value) -> Group:
        """The group of a value of strings."""
        group = self._groups.get(value)
        if group is None:
            group = self._groups[value] = Group([value])
        return group

    def lowered(self, value: Value | None) -> Group | None:
        """The group of a value that becomes places in a vocabulary; None for other values."""
        group = None if value is None else self._groups.get(value)
        return group if group is not None and group.lowered else None

    def groups(self) -> list[Group]:
        """All groups, in the order of their first value."""
        return list(dict.fromkeys(self._groups.values()))

    def _visit(self, node: Node) -> None:
        if node.bodies:
            self._ports(node)
            return
        moves = not traits_of(node.op).isdisjoint(_MOVES)
        otherwise = Vocabularies.move if moves else Vocabularies.work_on_text
        try:
            _VISITS.get(node.op, otherwise)(self, node)
        except (IndexError, ValueError):
            self.work_on_text(node)  # Its own rule reports the error in its attributes.

    def _ports(self, node: Node) -> None:
        for body in node.bodies:
            for value, port in body.entries():
                if not isinstance(port, Iteration):
                    self._flow(node.outer(port), value)
                if isinstance(port, Sliced):
                    self._names(value, ())
                if isinstance(port, Carried):
                    self._flow(body.graph.outputs[port.output], value)
            for value, exit in body.exits():
                if isinstance(exit, Yield | Stacked) and exit.output is not None:
                    self._flow(value, node.outputs[exit.output])
                if isinstance(exit, Stacked):
                    self._names(value, ())

    def _pass_on(self, node: Node, inputs: Iterable[Value | None]) -> None:
        """The output has strings of these inputs."""
        for value in inputs:
            for output in node.outputs:
                self._flow(value, output)

    def _flow(self, source: Value | None, target: Value) -> None:
        if is_string(source) and is_string(target):
            self._flows.setdefault(source, []).append(target)
            self._meet(source, target)

    def _meet(self, one: Value, other: Value) -> Group:
        """The group that both belong to from now on."""
        group, joined = self.of(one), self.of(other)
        if group is not joined:
            group.add(joined.words)
            group.values += joined.values
            group.needed |= joined.needed
            group.text |= joined.text
            for value in joined.values:
                self._groups[value] = group
        return group

    def _reached(self, start: Iterable[Value]) -> set[Value]:
        """All that the strings of some values can flow to."""
        waiting = list(start)
        reached = set(waiting)
        while waiting:
            for value in self._flows.get(waiting.pop(), ()):
                if value not in reached:
                    reached.add(value)
                    waiting.append(value)
        return reached

    def _names(self, value: Value | None, words: Iterable[str] | None) -> None:
        """An operator compares a value with these words, or makes it of them."""
        if is_string(value):
            group = self.of(value)
            group.needed = True
            group.add(words or ())

    # The effects of operators on strings.

    def move(self, node: Node) -> None:
        """It passes them on."""
        self._pass_on(node, node.inputs)

    def work_on_text(self, node: Node) -> None:
        """It needs to know more than which word of a vocabulary each of them is."""
        for value in (*node.inputs, *node.outputs):
            if is_string(value):
                self.of(value).text = True

    def constant(self, node: Node) -> None:
        """It adds its own strings."""
        (value,) = node.outputs
        if is_string(value):
            self.of(value).add(texts(value) or ())

    def equal(self, node: Node) -> None:
        """It compares strings; one side must be from the vocabulary."""
        one, other = node.inputs
        if is_string(one) and is_string(other):
            self._meet(one, other).needed = True
            self._closed.append((one, other))

    def selection(self, node: Node) -> None:
        """It passes strings on. IR has no such operator on strings, or OpenVINO's plugins do not
        run it. Or they copy the bytes of the objects that hold the strings, and free them twice."""
        self._pass_on(node, node.inputs)
        for value in node.outputs:
            self._names(value, ())

    def cast(self, node: Node) -> None:
        """It reads numbers, which are only known for the words of the vocabulary. Or it writes any
        integers as strings."""
        (x, *_), (y,) = node.inputs, node.outputs
        if is_string(x) and is_string(y):
            self._flow(x, y)
        elif is_string(x):
            self._names(x, ())
            self._closed.append((x,))
        elif x is not None and x.element is not None and x.element.is_integer:
            self._names(y, ())
            self._given.append(y)
        else:
            self.work_on_text(node)

    def label_encoder(self, node: Node) -> None:
        """It compares with its keys, and makes values."""
        self._names(node.inputs[0], listed(node, "keys"))
        self._names(node.outputs[0], listed(node, "values"))
        self._names(node.outputs[0], [default_word(node)])

    def named(self, node: Node) -> None:
        """Its attributes name the strings that it compares its input with, or makes."""
        ends = node.inputs[0], node.outputs[0]
        for value, attributes in zip(ends, _NAMED[node.op], strict=True):
            for words in map(node.attributes.get, attributes):
                self._names(value, [words] if isinstance(words, str) else words)


def words_of_inputs(graph: Graph) -> dict[Value, list[str]]:
    """The vocabularies of a graph's string inputs, each with one more word that is in no
    vocabulary."""
    if not any(map(is_string, graph.inputs)):
        return {}
    vocabularies = Vocabularies(graph)
    words = {value: vocabularies.of(value).words for value in graph.inputs if is_string(value)}
    return {value: [*known, max(known) + "?"] for value, known in words.items() if known}


def listed(node: Node, prefix: str) -> list[str] | None:
    """The keys or values of a LabelEncoder; None if they are no strings."""
    tensor = node.attributes.get(f"{prefix}_tensor")
    if tensor is not None:
        strings = tensor.element is STRING
        return [str(x) for x in tensor.array().reshape(-1)] if strings else None
    words = node.attributes.get(f"{prefix}_strings")
    return list(words) if words else None


def default_word(node: Node) -> str:
    """The output of a LabelEncoder with string values for an unknown key."""
    tensor = node.attributes.get("default_tensor")
    if tensor is not None and tensor.element is STRING:
        return str(tensor.array().reshape(-1)[0])
    word: str = node.attributes["default_string"]
    return word


_MOVES = frozenset({"elements_of_all", "elements_of_first", "reads_shape"})


_NAMED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "ai.onnx.ml::CategoryMapper": (("cats_strings",), ("cats_strings", "default_string")),
    "ai.onnx.ml::OneHotEncoder": (("cats_strings",), ()),
    "ai.onnx.ml::LinearClassifier": ((), ("classlabels_strings",)),
    "ai.onnx.ml::SVMClassifier": ((), ("classlabels_strings",)),
    "ai.onnx.ml::TreeEnsembleClassifier": ((), ("classlabels_strings",)),
}
"""The attributes with strings that an operator compares its input with, and that it makes."""

_SELECTIONS = (
    "Where", "Compress", "Expand", "GatherElements", "GatherND", "ReverseSequence",
    "ScatterElements", "ScatterND", "Slice", "Split", "Tile",
    "ai.onnx.ml::ArrayFeatureExtractor",
)  # fmt: skip
"""Operators that pick strings."""

_VISITS: dict[str, Callable[[Vocabularies, Node], None]] = {
    "Constant": Vocabularies.constant,
    "Equal": Vocabularies.equal,
    **dict.fromkeys(("Cast", "CastLike"), Vocabularies.cast),
    "ai.onnx.ml::LabelEncoder": Vocabularies.label_encoder,
    **dict.fromkeys(_SELECTIONS, Vocabularies.selection),
    **dict.fromkeys(_NAMED, Vocabularies.named),
}
