"""The results of a model that are nearest to the truth: of an ONNX model in wider floats than its
own, 64 bits, or else 32 bits in place of 16; of an IR by OpenVINO's reference functions, which have
no fast kernels. If engines round differently, these results show which engine is off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import bridge
from bridge.check.engines import Engine, EvaluatedOpenVino, OnnxRuntime, Reference, Session
from bridge.check.engines.adapters import widened
from bridge.check.engines.variables import Variables
from bridge.check.in_parts import ALL, put_in_parts
from bridge.check.loading import engine
from bridge.check.outputs import Comparison, Results
from bridge.errors import BridgeError
from bridge.library.boundary import Boundary
from bridge.library.opsets import DEFAULT_OPSET
from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Graph, Model, Node, Value, size_of_constants
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ContainerType, TensorType, Type
from bridge.vocabulary import has_trait
from bridge.vocabulary.elements import BF16, F16, F32, F64, Element

_LARGEST: dict[type[Engine], int] = {OnnxRuntime: 1 << 27, Reference: 1 << 25}
"""Bytes of the constants of a model that an engine computes so; the reference evaluator is slow."""

_LARGEST_QUICK = 1 << 20
"""Bytes of the constants of a model that the reference evaluator runs in a second or so."""

_LARGEST_IR = 1 << 24
"""The same for OpenVINO's reference functions."""

HALVES_WIDER = {F16: F32, BF16: F32}
_WIDER = ({F16: F64, BF16: F64, F32: F64}, HALVES_WIDER)


@dataclass(frozen=True)
class Exact:
    """The results of an engine in wider floats, cast back to the types of the model."""

    engine: str
    bits: int
    results: Results

    def __str__(self) -> str:
        return f"computed in {self.bits} bits by {self.engine}"


class ExactModel:
    """A file that is wanted exactly. Files are written into `scratch` when it is first run."""

    def __init__(self, path: Path, comparison: Comparison, scratch: Path) -> None:
        self._path, self._comparison, self._scratch = path, comparison, scratch

    def run(self, feed: Results) -> Exact | None:
        """What the file gives for an input; None where no engine computes it so, or the file is
        large."""
        for name, wider, session in self._sessions:
            bits = max((element.bits for element in wider.values()), default=F32.bits)
            with suppress(BridgeError):
                return Exact(name, bits, session.run(self._comparison.renamed(feed, session)))
        return None

    @property
    def is_slow(self) -> bool:
        """Whether a run takes seconds."""
        size, first = size_of_constants(self._model.graph), self._sessions[:1]
        return size > _LARGEST_QUICK and any(name == Reference.name for name, _, _ in first)

    @cached_property
    def _model(self) -> Model:
        return bridge.load(self._path)

    @cached_property
    def _sessions(self) -> list[tuple[str, dict[Element, Element], Session]]:
        """The engines that take the wide model, with it; of the widest floats that any takes."""
        found = list[tuple[str, dict[Element, Element], Session]]()
        size = size_of_constants(self._model.graph)
        if self._path.suffix.lower() != ".onnx":
            # Reference functions keep no states, and give the tensors that stand for sequences.
            is_plain = Variables.of(self._model) is None and not Boundary.of(self._model)
            with suppress(BridgeError):
                if size <= _LARGEST_IR and is_plain:
                    functions = engine(EvaluatedOpenVino)
                    found.append((functions.name, {}, functions.load(self._path)))
            return found
        for wider in _WIDER:
            copy = clone_model(self._model)
            put_in_parts(copy, ALL)
            if found or not widen(copy, wider):
                continue
            target = self._scratch / f"{self._path.stem}.{len(wider)}.wide.onnx"
            with suppress(BridgeError):
                bridge.save(copy, target, opset=max(DEFAULT_OPSET, copy.opset or 0))
                for kind, largest in _LARGEST.items():
                    if size <= largest:
                        with suppress(BridgeError):
                            session = widened(engine(kind).load(target), wider, self._model)
                            found.append((kind.name, wider, session))
        return found


def widen(model: Model, wider: dict[Element, Element]) -> bool:
    """Puts wider floats in the place of others, in place. Whether there were any. An operator that
    takes none makes it a model that no engine loads."""
    changed = False
    for node in model.graph.walk():
        if node.op == "ConstantOfShape" and node.attributes["value"] is None:
            node.attributes["value"] = Tensor.of(np.zeros(1, np.float32))
        first = node.input(0)
        narrow = first.element if first is not None and has_trait(node.op, "by_element") else None
        for name, given in node.attributes.items():
            if isinstance(given, float) and narrow in HALVES_WIDER:
                # The standard's function bodies have such numbers in the type of the input.
                node.attributes[name] = float(narrow.dtype.type(given))
            elif name != "stash_type":  # what onnx.reference has no other for
                node.attributes[name] = _wide(given, wider)
                changed |= node.attributes[name] is not given
    for value in _values(model.graph):
        value.type, given = _wide_type(value.type, wider), value.type
        value.declared = _wide_type(value.declared, wider)
        changed |= value.type != given
    model.defaults = {value: _wide(default, wider) for value, default in model.defaults.items()}
    Rewriter(model.graph).run(Pattern(_with_narrow_scales, frozenset({"Resize"})))
    return changed


def _with_narrow_scales(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    """Resize has scales of 32 bits."""
    scales = node.input(2)
    if scales is None or scales.element is F32:
        return None
    inputs = [b.cast(one, F32) if one is scales else one for one in node.inputs]
    return b.op("Resize", *inputs, **node.attributes)


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for node in graph.walk():
        yield from node.outputs
        for body in node.bodies:
            yield from body.graph.inputs


def _wide(given: Any, wider: dict[Element, Element]) -> Any:
    """What an attribute holds: an element type or a tensor of wider floats, or as it is."""
    if isinstance(given, Element):
        return wider.get(given, given)
    if isinstance(given, Tensor) and given.element in wider:
        return Tensor.of(given.array().astype(wider[given.element].dtype))
    return given


def _wide_type(type: Type, wider: dict[Element, Element]) -> Type:
    if isinstance(type, ContainerType):
        return type.of(_wide_type(type.item, wider))
    if isinstance(type, TensorType) and type.element in wider:
        return TensorType(wider[type.element], type.shape)
    return type
