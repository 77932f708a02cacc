"""What a rule reads of a node. An attribute or input that no rule reads means something that Bridge
does not know, so the node is refused."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bridge.errors import Refused
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.rewrite import Result
from bridge.operators.schemas import NEWEST, schema_defaults
from bridge.vocabulary import ANY_VALUE, ignored_attributes, operator


class Unread(Refused):
    """Raised for a node with an attribute or an input that no rule reads."""

    def __init__(self, what: str, op: str) -> None:
        super().__init__(
            f"{what} of {op} is not known to this version of Bridge; leave it out if the model "
            "means the same without it, or use a newer version"
        )


class NotedAttributes(dict[str, Any]):
    """Attributes that note which of them were read by name. Copies of all of them note nothing."""

    __slots__ = ("read",)

    def __init__(self, attributes: dict[str, Any]) -> None:
        super().__init__(attributes)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def __missing__(self, name: str) -> Any:
        raise Refused(f"it lacks the attribute `{name}`")

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The attribute, or the default."""
        self.read.add(name)
        return super().get(name, default)


class NotedInputs(list["Value | None"]):
    """Inputs that note which of them were read. Who iterates reads them all."""

    __slots__ = ("read",)

    def __init__(self, inputs: Sequence[Value | None]) -> None:
        super().__init__(inputs)
        self.read: set[int] = set()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            self.read.update(range(*index.indices(len(self))))
        else:
            self.read.add(index % len(self) if index < 0 and self else index)
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Value | None]:
        self.read.update(range(len(self)))
        return super().__iter__()


def applied(
    rule: Callable[[Builder, Node], Result],
    b: Builder,
    node: Node,
    defaults: Callable[[], Mapping[str, Any]] | None = None,
) -> Result:
    """The result of a rule for a node as a file has it. Unread if the rule gives one, but has left
    an attribute or an input unread. An attribute with one of the `defaults`, by default those of
    its newest schema, counts as absent."""
    attributes, inputs = node.attributes, node.inputs
    noted = attributes if isinstance(attributes, NotedAttributes) else NotedAttributes(attributes)
    node.attributes = noted
    taken = node.inputs = NotedInputs(inputs)
    start = len(b.nodes)
    try:
        result = rule(b, node)
    finally:
        node.attributes, node.inputs = attributes, inputs
    if result is None:
        return None
    if not noted.read.issuperset(attributes):
        usual = _schema_defaults(node.op) if defaults is None else defaults()
        for name, value in attributes.items():
            if name in noted.read or without_effect(node.op, name, value, usual):
                continue
            if not any(_is_handed(name, value, other) for other in b.nodes[start:]):
                raise Unread(f"attribute `{name}`", node.op)
    if len(taken.read) < len(inputs):
        for index, value in enumerate(inputs):
            if value is not None and index not in taken.read:
                raise Unread(f"input {index}", node.op)
    for other in b.nodes[start:]:
        _require_places(other, node.op, attributes)
    return result


def _is_handed(name: str, value: Any, node: Node) -> bool:
    """Whether a rule handed an attribute on to a node that it made, which is asked in turn."""
    return name in node.attributes and node.attributes[name] is value


_KINDS: dict[str, type | tuple[type, ...]] = {
    "int": int, "float": (int, float), "bool": int, "string": str, "ints": tuple, "floats": tuple,
}  # fmt: skip
"""What a value of some types of attributes is in Python."""


def _require_places(made: Node, op: str, given: Mapping[str, Any]) -> None:
    """Raises Unread if a rule for `op` handed on what the row of the node that it made lacks, and
    Refused for a given attribute of another type there."""
    row = operator(made.op)
    if row is None or made.bodies or made.op == "Constant":
        return
    if len(made.attributes) > len(row.attributes):
        name = next(name for name in made.attributes if name not in row.attributes)
        raise Unread(f"attribute `{name}`", op)
    for name, value in made.attributes.items():
        kind = _KINDS.get(row.attributes[name].type, object)
        if value is not None and given.get(name) is value and not isinstance(value, kind):
            raise Refused(f"its attribute `{name}` is {value!r}")
    most = len(row.inputs)
    if len(made.inputs) > most and not (most and row.inputs[-1].endswith("*")):
        raise Unread(f"input {most}", op)


def _schema_defaults(op: str) -> Mapping[str, Any]:
    domain, _, type = op.rpartition("::")
    return schema_defaults(type, NEWEST, domain)


def without_effect(op: str, name: str, value: Any, defaults: Mapping[str, Any]) -> bool:
    """Whether an unread attribute changes nothing: it has its default, or its value is ignored, or
    it is somebody's own note, which ONNX's checker lets pass."""
    if name in defaults and defaults[name] == value:
        return True
    ignored = ignored_attributes(op)
    return (name in ignored and ignored[name] in (value, ANY_VALUE)) or name.startswith("__")
