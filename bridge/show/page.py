"""A model, with the results of a check, as a page that needs no other files."""

import json
from html import escape
from pathlib import Path
from typing import Any

from bridge.errors import UsageError, printable
from bridge.records.entry import Json
from bridge.show.frame import framed
from bridge.show.states import STATES


def page(outline: Json, check: Json | None = None) -> str:
    """The page of a model (`bridge.show.outline`), coloured by the JSON of a check. UsageError if
    the check is of another model."""
    if check is not None:
        require_same(outline, check)
        if "text" not in check:
            raise UsageError("the check was made by an older Bridge; check the model again")
    outline, check = escaped(outline), escaped(check)
    data = {"outline": outline, "check": check, "states": STATES}
    return framed(
        "page.html",
        escape(f"{Path(outline['file']).name} · Bridge", quote=False),
        "page.css",
        script=(Path(__file__).parent / "page.js").read_text(encoding="utf-8"),
        # No name in the model may end the element that the data stands in.
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    )


def escaped(data: Any) -> Any:
    """Data of JSON whose texts can be shown anywhere."""
    if isinstance(data, str):
        return printable(data)
    if isinstance(data, dict):
        return {printable(name): escaped(value) for name, value in data.items()}
    return list(map(escaped, data)) if isinstance(data, list | tuple) else data


def require_same(outline: Json, check: Json) -> None:
    """Raises UsageError if a check's JSON does not have the Ifs of the outline."""
    own = [node["where"] for node in outline["nodes"] if node["op"] == "If"]
    try:
        checked = [site["where"] for site in check["ifs"]]
        branches = [site[role] for site in check["ifs"] for role in ("then", "else")]
        branches += [
            loop[role] for loop in check.get("loops", ()) for role in ("none", "one", "several")
        ]
        unknown = {str(branch["state"]) for branch in branches if branch["text"] is not None}
        unknown -= STATES.keys()
    except (AttributeError, TypeError, KeyError):
        raise UsageError("the coverage is no output of 'bridge check --json'") from None
    if unknown:
        raise UsageError(
            f"the check has branches of the state {', '.join(sorted(unknown))}, which this Bridge "
            "does not know; check the model again"
        )
    if checked and own != checked:
        raise UsageError(
            f"the check is of {check.get('source', 'another model')}, which has other Ifs than "
            f"{outline['file']}"
        )
