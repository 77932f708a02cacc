"""The `<rt_info>` of a model: kept as it is, and Bridge's own part of it.

`<bridge><metadata><entry name="..." value="..."/></metadata></bridge>` holds `Model.metadata`,
which OpenVINO reads and keeps like any other entry.

Other tools write facts about the model there: optimum writes its task, a tokenizer its template.
They go to ONNX in `Model.metadata` under `rt_info`. Facts about the file alone (its writer and
options) do not go along.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bridge.ir_format.document import select
from bridge.ir_format.text import as_text, attribute
from bridge.records.entry import Entry

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as XmlElement

ABOUT_MODEL: Entry[list[str]] = Entry("rt_info", list[str], "rt_info", hint=True)
"""Entries about the model, as XML texts."""

_ABOUT_FILE = {
    "conversion_parameters", "is_new_api", "legacy_frontend", "MO_version", "OpenVINO Runtime",
    "optimized_model", "Runtime_version",
}  # fmt: skip
_LONGEST = 1 << 20
"""Characters of the entries that a model from elsewhere may bring."""


def keep_about_model(net: XmlElement, metadata: dict[str, str]) -> None:
    """Adds the facts about the model in its rt_info to the metadata."""
    kept = [
        as_text(child)
        for child in select(net, "rt_info", "*")
        if child.tag != "bridge"
        and not {child.tag, child.get("name", "")} & _ABOUT_FILE
        and child.get("name", "") != "bridge"
    ]
    if kept and sum(map(len, kept)) <= _LONGEST:
        ABOUT_MODEL.write(metadata, kept)


def take_about_model(metadata: dict[str, str]) -> tuple[str, ...]:
    """Removes the entries about the model from the metadata and returns them. Entries that are no
    XML, or that Bridge would write in another way, are left out: a file may have been changed."""
    entries = ABOUT_MODEL.take(metadata) or []
    return tuple(entry for entry in entries if len(entry) <= _LONGEST and _is_entry(entry))


def _is_entry(text: str) -> bool:
    """Whether a text is one element, without a document type or comments around it."""
    from lxml import etree

    if re.match(r"<[A-Za-z_]", text) is None or not text.endswith(">"):
        return False
    try:
        etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        return False
    return True


def read_rt_info(net: XmlElement) -> tuple[tuple[str, ...], dict[str, str]]:
    """The entries of a model's rt_info as XML texts, and the metadata Bridge put there."""
    entries: list[str] = []
    metadata: dict[str, str] = {}
    for child in select(net, "rt_info", "*"):
        if child.tag != "bridge" and child.get("name") != "bridge":
            entries.append(as_text(child))
            continue
        for entry in select(child, "*", "*"):
            # OpenVINO writes <info name="key" value="..."/>, older ones <key value="..."/>.
            metadata[entry.get("name", entry.tag)] = entry.get("value", "")
    return tuple(entries), metadata


def write_rt_info(entries: tuple[str, ...], metadata: dict[str, str]) -> str:
    """The `<rt_info>` element of a model."""
    lines = ["\t<rt_info>\n"]
    lines += [f"\t\t{entry}\n" for entry in entries]
    if metadata:
        lines.append("\t\t<bridge>\n\t\t\t<metadata>\n")
        for key, value in metadata.items():
            name, text = attribute(key), attribute(value)
            lines.append(f"\t\t\t\t<info name={name} value={text} />\n")
        lines.append("\t\t\t</metadata>\n\t\t</bridge>\n")
    lines.append("\t</rt_info>\n")
    return "".join(lines)
