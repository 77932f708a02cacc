"""An IR whose inputs or outputs stand for what it does not have, seen as the ONNX model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bridge.check.engines import EngineError, Session, ValueInfo, run_each
from bridge.library.boundary import Boundary, pack, unpack


class PackedSession:
    """Takes and gives lists, None, strings and maps where the tensors of `session` stand for
    them."""

    def __init__(self, session: Session, boundary: Boundary) -> None:
        self._session = session
        self._boundary = boundary
        self.inputs = _infos(session.inputs, boundary.inputs)
        self.outputs = _infos(session.outputs, boundary.outputs)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`."""
        return self._unpacked(self._session.run(pack(self._boundary, feeds)))

    def run_each(self, feeds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | EngineError]:
        """See `engines.run_each`."""
        found = run_each(self._session, [pack(self._boundary, feed) for feed in feeds])
        return [one if isinstance(one, EngineError) else self._unpacked(one) for one in found]

    def _unpacked(self, results: Mapping[str, Any]) -> dict[str, Any]:
        # A tensor may have the names of several parts; each part asks for its own.
        named = {
            name: results[port.name]
            for port in self._session.outputs
            for name in (*port.aliases, port.name)
        }
        unpacked = unpack(self._boundary, named)
        return {port.name: unpacked[port.name] for port in self.outputs}


def _infos(ports: tuple[ValueInfo, ...], packed: Mapping[str, Any]) -> tuple[ValueInfo, ...]:
    """The ports as the ONNX model has them, each in the place of the first tensor it stands for."""
    owners = {part: name for name, own in packed.items() for part in own.parts(name)}
    parts = set(owners)
    seen: dict[str, ValueInfo] = {}
    for port in ports:
        names = (port.name, *sorted(port.aliases))
        # Ports that are one tensor share their names: a part is the first of them.
        part = next((name for name in names if name in owners), None)
        if part is None:
            own_name = next((name for name in names if name not in parts), port.name)
            seen[own_name] = replace(port, name=own_name)
        else:
            owner = owners.pop(part)
            seen.setdefault(owner, ValueInfo(owner))
    # A sequence without elements has no tensor at all.
    for name, own in packed.items():
        if not own.parts(name):
            seen[name] = ValueInfo(name)
    return tuple(seen.values())
