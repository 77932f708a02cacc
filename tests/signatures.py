"""`python -m tests.signatures` writes what the installed onnx says of operators into
`bridge/onnx_format/signatures.txt` and `bridge/operators/types.txt`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import onnx.defs

from bridge.onnx_format import signature
from bridge.operators import type_constraints


def signatures() -> str:
    """What operators take and give, of the installed onnx."""
    return _table(_said_by(signature.described))


def types() -> str:
    """Of which types that is."""
    numbers: dict[str, int] = {}

    def numbered(schema: Any) -> Any:
        *fields, allowed = type_constraints.described(schema)
        texts = {variable: json.dumps(names) for variable, names in allowed.items()}
        return [*fields, {v: numbers.setdefault(text, len(numbers)) for v, text in texts.items()}]

    table = _table(_said_by(numbered))
    return table + "".join(f"{number} {text}\n" for text, number in numbers.items())


def _said_by(described: Callable[[Any], Any]) -> dict[str, dict[int, Any]]:
    """What is said of each operator of the default domain, by its versions."""
    found: dict[str, dict[int, Any]] = defaultdict(dict)
    schemas = (s for s in onnx.defs.get_all_schemas_with_history() if s.domain == "")
    for schema in sorted(schemas, key=lambda s: (s.name, s.since_version)):
        found[schema.name][schema.since_version] = described(schema)
    return found


def _table(said: dict[str, dict[int, Any]]) -> str:
    rows = (
        f"{name} {json.dumps(_changes(versions), separators=(',', ':'))}\n"
        for name, versions in sorted(said.items())
    )
    return f"{onnx.defs.onnx_opset_version()}\n{''.join(rows)}"


def _changes(versions: dict[int, Any]) -> list[tuple[int, Any]]:
    """Those of the versions, in order, that say something else than the one before."""
    said: list[tuple[int, Any]] = []
    for version, fields in sorted(versions.items()):
        if not said or said[-1][1] != fields:
            said.append((version, fields))
    return said


if __name__ == "__main__":
    signature.TABLE.write_text(signatures(), encoding="utf-8")
    type_constraints.TABLE.write_text(types(), encoding="utf-8")
