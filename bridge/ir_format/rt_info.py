"""The `<rt_info>` of a model: kept as it is, and Bridge's own part of it.

`<bridge><metadata><entry name="..." value="..."/></metadata></bridge>` holds `Model.metadata`,
which OpenVINO reads and keeps like any other entry.
"""

from __future__ import annotations

from bridge.ir_format.document import Element, select
from bridge.ir_format.text import as_text, attribute


def read_rt_info(net: Element) -> tuple[tuple[str, ...], dict[str, str]]:
    """The entries of a model's rt_info as XML texts, and the metadata Bridge put there."""
    entries: list[str] = []
    metadata: dict[str, str] = {}
    for child in select(net.children, "rt_info", "*"):
        if child.tag != "bridge" and child.get("name") != "bridge":
            entries.append(as_text(child))
            continue
        for entry in select(child.children, "*", "*"):
            # OpenVINO writes <info name="key" value="..."/>, older ones <key value="..."/>.
            metadata[entry.get("name", entry.tag)] = entry.get("value")
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
