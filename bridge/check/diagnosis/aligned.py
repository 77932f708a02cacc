"""Runs a file in an engine under the names of the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.check.engines import EngineError, Session, ValueInfo


class Aligned:
    """A session that takes inputs under the original's names, and gives outputs under these
    `names` of it, or under its own if there are none. What has no such name is taken by its
    position."""

    def __init__(self, session: Session, names: Sequence[str] = ()) -> None:
        self._session, self._names = session, names
        self.inputs, self.outputs = session.inputs, session.outputs

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """See `Session.run`. Raises EngineError also if there are not as many outputs."""
        session, own = self._session, self._session.inputs
        if not all(_names(port) & feeds.keys() for port in own):
            feeds = {p.name: value for p, value in zip(own, feeds.values(), strict=False)}
        results = session.run(feeds)
        if not self._names:
            return results
        found = [
            next((p.name for p in session.outputs if name in _names(p)), "") for name in self._names
        ]
        if not all(found):
            if len(results) != len(self._names):
                raise EngineError(f"{len(results)} outputs, expected {len(self._names)}")
            found = list(results)
        return {name: results[place] for name, place in zip(self._names, found, strict=True)}


def _names(port: ValueInfo) -> set[str]:
    return {port.name, *port.aliases}
