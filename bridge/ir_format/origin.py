"""The facts of an ONNX model for which IR has no place: its operator sets, its producer, its notes,
the names of its bodies, and which nodes have no name. IR's rt_info keeps them for the way back.

IR wants a unique name for every layer. A layer without a name gets its type and its id; layers that
are made for one node are numbered. If the model itself has such a name, the record lists it in
`named`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from bridge.ir_format.names import unnumbered
from bridge.neutral.builder import DEFAULT_OPSET
from bridge.neutral.extras import Fits, Note, OnnxExtras
from bridge.neutral.graph import Graph, Model
from bridge.records.entry import Entry

BODY = "body"
"""The name of a body that the record does not name."""

NEWEST = 1 << 16
"""The newest operator set that a record may speak of."""

OperatorSet = Annotated[int, Fits(lambda number: 1 <= number <= NEWEST, "operator set")]


@dataclass(eq=False)
class Origin:
    """The record. `about` are fields of the model by name, `notes` is `OnnxExtras.notes`. `bodies`
    are the names of bodies in the order of the file, outer before inner, "" for BODY. `formers` are
    the original ONNX nodes of layers (see `bridge.ir_format.provenance`)."""

    opset: OperatorSet = 0
    opsets: dict[str, OperatorSet] = field(default_factory=dict)
    about: OnnxExtras = field(default_factory=OnnxExtras)
    notes: dict[str, Note] = field(default_factory=dict)
    bodies: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    numbered: dict[str, int] = field(default_factory=dict)
    formers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._named = frozenset(self.named)

    def given(self, name: str, type: str, id: int) -> str:
        """The name of a layer in the original model, without the parts that IR needed."""
        if not self.opset or name in self._named:
            return name
        if name == f"{type}_{id}":
            return ""
        base, number = unnumbered(name)
        return base if 1 <= number <= self.numbered.get(base, 0) else name

    def give(self, model: Model, bodies: Sequence[Graph]) -> None:
        """Restores the facts of the original model in a model and its `bodies`, in order."""
        if not self.opset:
            return
        if len(bodies) == len(self.bodies):
            for graph, name in zip(bodies, self.bodies, strict=True):
                graph.name = name
        model.opset, model.opsets = self.opset, self.opsets
        model.extras["onnx"] = {**self.about, "notes": self.notes}


ORIGIN: Entry[Origin] = Entry("onnx", Origin, "origin", hint=True)
"""The entry for the ONNX model that an IR came from."""


def origin_of(
    model: Model,
    bodies: Sequence[Graph],
    named: list[str],
    numbered: dict[str, int],
    formers: dict[str, dict[str, list[Any]]],
) -> Origin | None:
    """The record of a model that was ONNX once, perhaps with operators of other domains alone; None
    for another."""
    opset = model.opset or (DEFAULT_OPSET if model.opsets else None)
    if opset is None:
        return None
    about = model.extras.get("onnx", OnnxExtras()).copy()
    notes = about.pop("notes", {})
    names = ["" if graph.name == BODY else graph.name for graph in bodies]
    named = [name for name in dict.fromkeys(named) if _looks_made(name, numbered)]
    return Origin(
        opset, model.opsets, about, notes, names if any(names) else [], named, numbered,
        formers,
    )  # fmt: skip


def load(metadata: dict[str, str]) -> Origin:
    """Takes the record out of the metadata. An empty record, without an operator set, stays."""
    origin = ORIGIN.read(metadata)
    if origin is None or not origin.opset:
        return Origin()
    del metadata[ORIGIN.key]
    return origin


def _looks_made(name: str, numbered: dict[str, int]) -> bool:
    """Whether a name that the model gave could be one that was made, of a layer of some type."""
    base, number = unnumbered(name)
    return base.isalnum() or 1 <= number <= numbered.get(base, 0)
