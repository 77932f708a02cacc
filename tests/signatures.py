"""`python -m tests.signatures` writes what the installed onnx says of operators into
`bridge/onnx_format/signatures.txt`."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import onnx.defs

from bridge.onnx_format.signature import TABLE, described


def signatures() -> str:
    """The table, of the installed onnx."""
    found: dict[str, dict[int, Any]] = defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            found[schema.name][schema.since_version] = described(schema)
    rows = (
        f"{name} {json.dumps(_changes(versions), separators=(',', ':'))}\n"
        for name, versions in sorted(found.items())
    )
    return f"{onnx.defs.onnx_opset_version()}\n{''.join(rows)}"


def _changes(versions: dict[int, Any]) -> list[tuple[int, Any]]:
    """Those of the versions, in order, that say something else than the one before."""
    said: list[tuple[int, Any]] = []
    for version, signature in sorted(versions.items()):
        if not said or said[-1][1] != signature:
            said.append((version, signature))
    return said


if __name__ == "__main__":
    TABLE.write_text(signatures(), encoding="utf-8")
