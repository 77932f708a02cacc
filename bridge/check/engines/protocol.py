"""What all engines have in common: how a model is loaded and run, and what can go wrong.

Tensors are numpy arrays on every side; strings have the type `object`. `ml_dtypes` has the types
that numpy lacks: bfloat16, the 8-bit floats, everything below eight bits. A sequence is a list, an
absent optional is None.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from bridge.errors import BridgeError
from bridge.neutral.tensor import pack, unpack
from bridge.vocabulary.elements import Element, element_of

if TYPE_CHECKING:
    import onnx

Loadable: TypeAlias = "str | Path | onnx.ModelProto"
Feeds = Mapping[str, Any]
RunResults = dict[str, Any]


class EngineError(BridgeError):
    """An engine is missing, cannot take a model, or fails while it runs it."""


class EndlessError(EngineError):
    """A run did not end in its time, and was ended."""


class UndefinedCallError(EngineError):
    """An input says two things of the states, which a model that has one of them cannot be told."""


class LacksOperatorError(EngineError):
    """The engine has no implementation of an operator, type, or version in the model."""


@dataclass(frozen=True)
class ValueInfo:
    """An input or output of a loaded model, as its engine declares it.

    `shape` is None for an unknown rank and for what is no tensor, and holds an int, a symbol, or
    None for each dimension. `aliases` are further names that feeds may use.
    """

    name: str
    shape: tuple[int | str | None, ...] | None = None
    aliases: frozenset[str] = frozenset()


STATES = "bridge.states"
"""The feed and the result that hold the contents of variables, by their ids. They are set before
a run that has this feed; all others start by themselves."""

CALL = "bridge.call"
"""The feed that makes a run a call in a row: its number, from 0. The model keeps its states since
the call before; the first starts without any, and states that are fed are ignored."""


class Session:
    """A model that is ready to run. `metadata` is that of an ONNX model."""

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    metadata: Mapping[str, str] = {}
    engine = ""
    """Which engine that is, with its version, as a report says it."""
    keeps = False
    """Whether the engine may keep something of a run that changes later ones."""
    has_states = False
    """Whether the model keeps states that are inputs and outputs here; see `run_row`."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how the session was opened."""
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """Outputs that only the model has whose names the session goes by, and that only this has."""

    def run(self, feeds: Feeds) -> RunResults:
        """Run once; returns every output by name, in the order of `outputs`."""
        (result,) = self.run_each([feeds])
        if isinstance(result, EngineError):
            raise result
        return result

    def run_each(
        self, feeds: Sequence[Feeds], fresh: bool = False
    ) -> list[RunResults | EngineError]:
        """The outputs for each of several inputs in order, or why there are none. If `fresh`, each
        runs as if it were the first."""
        found: list[RunResults | EngineError] = []
        for feed in feeds:
            try:
                if fresh:
                    self.renew()
                found.append(self.run(feed))
            except EngineError as error:
                found.append(error)
        return found

    def run_row(self, feeds: Sequence[Feeds]) -> list[RunResults]:
        """The outputs of calls in a row, between which the model keeps its states. The first starts
        without any; states that are fed are ignored. Raises EngineError."""
        calls = [{**feed, CALL: number} for number, feed in enumerate(feeds)]
        return [self.run(call) for call in calls]

    def renew(self) -> None:
        """Forgets all that earlier runs have left, where the model runs in this process."""


class Engine(Protocol):
    """Something that loads models of some formats and runs them."""

    name: str
    version: str

    def load(self, source: Loadable) -> Session:
        """Load a model from a path, or from a ModelProto where the engine takes ONNX."""


def optional_module(name: str) -> Any:
    """The module of an engine; EngineError where it cannot be imported."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise EngineError(
            f"{name} is not installed; install the extra 'check': "
            "pip install 'onnx-openvino-bridge[check]'"
        ) from error
    except ImportError as error:
        raise EngineError(f"{name} cannot be imported: {error}") from error


def message(error: Exception) -> str:
    """The part of an engine's message that says something, without C++ source locations."""
    words = (
        word[: word.index("/")] if "/onnxruntime/core/" in word else word
        for word in str(error).split()
    )
    text = " ".join(filter(None, words))
    # A failure inside an If or Loop is wrapped once for each of them.
    _, failure, rest = text.rpartition("Non-zero status code returned while running")
    text = re.sub(
        r"Exception from src/\S+:\d+:\s*|Load model from \S+ failed: *", "", failure + rest
    )
    before, _, signature = text.partition("onnxruntime::Model::Model(")
    text = before + signature.partition(") ")[2] if signature else text
    text = re.sub(r"\[ONNXRuntimeError\] : \d+ : (\w+) : ", r"\1: ", text)
    return text or type(error).__name__


def content_of(source: Loadable) -> str | bytes:
    """A model as engines open it: its path, or its bytes where it is in memory."""
    return str(source) if isinstance(source, str | Path) else source.SerializeToString()


_MOST_AXES = 64  # of an array of NumPy


def bytes_of(array: np.ndarray) -> bytes:
    """Row-major little-endian bytes; elements below eight bits packed, first one lowest."""
    return pack(array, element_of(array.dtype)).tobytes()


def array_of(data: bytes, element: Element, shape: Sequence[int]) -> np.ndarray:
    """The array of `shape` and `element` in bytes packed like `bytes_of`. EngineError for a rank
    that NumPy has no arrays of."""
    if len(shape) > _MOST_AXES:
        raise EngineError(f"a tensor has {len(shape)} dimensions; it may have {_MOST_AXES}")
    return np.array(unpack(data, element, math.prod(shape)).reshape(shape))


def is_empty(feeds: Feeds) -> bool:
    """Whether an input has no elements."""
    return any(isinstance(value, np.ndarray) and not value.size for value in feeds.values())


def feed_of(port: ValueInfo, feeds: Mapping[str, Any]) -> Any:
    """What `feeds` has for an input; EngineError where that is nothing."""
    for name in (port.name, *sorted(port.aliases)):
        if name in feeds:
            value = feeds[name]
            return value if value is None or isinstance(value, list) else np.asarray(value)
    raise EngineError(f"input '{port.name}' is not among the feeds: {', '.join(feeds) or 'none'}")
