"""A model's Ifs and Loops as a picture: boxes in boxes, with the ports of each branch and body.

The picture is an SVG without other files. Names are shortened; tooltips show the full ones. It
follows the reader's light or dark scheme, in a page that embeds it too.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from bridge.records.entry import Json
from bridge.show.page import escaped, require_same
from bridge.show.states import STATES

_WIDEST = 1320  # the most width of boxes side by side; else they are below one another
_LINE = 21
_PAD = 14
_GAP = 12
_CHARACTER = 7.3  # the width of one, in the monospaced font of 12 pixels
_PORTS = 10  # the most ports shown for a branch
_MANY = 200  # Ifs and Loops; a picture with more is folded
_FOLDED = 8  # Ifs and Loops that a folded picture shows in one place
_NAMED = 40  # the most names of hidden ones in a tooltip

_STYLE = (Path(__file__).parent / "picture.css").read_text(encoding="utf-8")
_GLYPHS = {
    "reached": "●",
    "forced": "◆",
    "pruned": "○",
    "failing": "▲",
    "unknown": "□",
    "different": "✕",
}


@dataclass
class _Box:
    """A drawn rectangle of a size; `draw` gives its SVG with the upper left corner at a place."""

    width: float
    height: float
    draw: Callable[[float, float], list[str]]


@dataclass
class _Line:
    """A line of text: pieces with their style's class, and its tooltip."""

    pieces: list[tuple[str, str]]
    title: str = ""
    width: float = field(init=False)

    def __post_init__(self) -> None:
        widths = {"head": 8.0, "role": 8.0}
        self.width = sum(len(text) * widths.get(style, _CHARACTER) for text, style in self.pieces)

    def draw(self, x: float, y: float) -> list[str]:
        spans = "".join(
            f'<tspan class="{style}">{escape(text)}</tspan>' for text, style in self.pieces
        )
        title = f"<title>{escape(self.title)}</title>" if self.title else ""
        return [f'<text x="{x:g}" y="{y + 15:g}">{title}{spans}</text>']


def picture(outline: Json, check: Json | None = None) -> str:
    """The picture of a model (`bridge.show.outline`), coloured by the JSON of a check. UsageError
    if the check is of another model."""
    if check is not None:
        require_same(outline, check)
    outline, check = escaped(outline), escaped(check)
    box = _Painter(outline, check).model()
    width, height = box.width + 2 * _GAP, box.height + 2 * _GAP
    title = escape(Path(outline["file"]).name)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="Ifs and Loops of {title}">',
            f"<title>{title}</title>",
            f"<style>\n{_STYLE}</style>",
            f'<rect class="ground" width="{width:g}" height="{height:g}" rx="10"/>',
            *box.draw(_GAP, _GAP),
            "</svg>\n",
        ]
    )


class _Painter:
    def __init__(self, outline: Json, check: Json | None) -> None:
        self.outline = outline
        self.check = check if check and check["ifs"] else None  # which may not have watched any
        self.nodes: list[Json] = outline["nodes"]
        self.names: list[list[str]] = outline["names"]

    def model(self) -> _Box:
        """The whole model: its name, inputs and outputs, and the boxes of its Ifs and Loops."""
        lines = [
            _Line(
                [(Path(self.outline["file"]).name, "head"), (f"  {self.outline['format']}", "says")]
            ),
            *self._ports("in", self.outline["inputs"]),
            *self._ports("out", self.outline["outputs"]),
        ]
        # Innermost first, without recursion: models may be nested to any depth.
        boxes: dict[int, _Box] = {}
        for index in reversed(range(len(self.nodes))):
            boxes[index] = self._node(self.nodes[index], boxes)
        return _framed("model", lines, self._place(self.outline["top"], boxes))

    def _place(self, indices: Sequence[int], boxes: dict[int, _Box]) -> _Box | None:
        """The boxes of one graph below each other. A picture of many Ifs and Loops shows a few
        in each place, different ones first, and counts the rest."""
        shown = list(indices)
        if len(self.nodes) > _MANY and len(shown) > _FOLDED:
            shown = sorted(sorted(shown, key=self._interest)[:_FOLDED])
        left = [index for index in indices if index not in {*shown}]
        drawn = [boxes[index] for index in shown]
        if left:
            kinds = Counter(self.nodes[index]["op"] for index in left)
            more = " and ".join(f"{count} more {op}s" for op, count in kinds.items())
            named = [self.names[self.nodes[index]["name"]][1] for index in left[:_NAMED]]
            rest = [f"and {len(left) - _NAMED} more"] if len(left) > _NAMED else []
            drawn.append(_framed("body", [_Line([(more, "says")], "\n".join(named + rest))], None))
        return _arranged(drawn)

    def _interest(self, index: int) -> int:
        """How early a folded picture shows an If: those with branches that differ come first."""
        node = self.nodes[index]
        if self.check is None or node["op"] != "If":
            return len(STATES)
        site = self.check["ifs"][node["site"]]
        order = ("different", "failing", "unknown")
        found = (site[body["role"]]["state"] for body in node["bodies"])
        return min(order.index(state) if state in order else len(order) for state in found)

    def _node(self, node: Json, boxes: dict[int, _Box]) -> _Box:
        short, full = self.names[node["name"]]
        layer = f"\nin the IR: layer {node['layer']}" if "layer" in node else ""
        others = [self.names[other][1] for output in node["outputs"] for other in output[2]]
        also = f"\nalso called {', '.join(others)}" if others else ""
        lines = [
            _Line(
                [(f"{node['op']} ", "op"), (short, "name"), (f"  {node['says']}", "says")],
                full + layer + also,
            )
        ]
        parts = [self._body(node, body, boxes) for body in node["bodies"]]
        total = sum(part.width for part in parts) + _GAP * (len(parts) - 1)
        return _framed(node["op"].lower(), lines, _arranged(parts, beside=total <= _WIDEST))

    def _body(self, node: Json, body: Json, boxes: dict[int, _Box]) -> _Box:
        state = None
        if self.check is not None and node["op"] == "If":
            state = self.check["ifs"][node["site"]][body["role"]]
        head = [(body["role"], "role")]
        if state is not None:
            name = state["state"]
            head.append((f"  {_GLYPHS[name]} {STATES[name]}", f"state {name}"))
        lines = [
            _Line(head, state["text"] if state is not None else ""),
            *self._ports("in", body["inputs"]),
            *self._ports("out", body["outputs"]),
        ]
        inner = self._place(body["nodes"], boxes)
        return _framed(f"body {state['state']}" if state is not None else "body", lines, inner)

    def _ports(self, side: str, ports: Sequence[Any]) -> list[_Line]:
        lines = [self._port(side, port) for port in ports[:_PORTS]]
        if len(ports) > _PORTS:
            rest = "\n".join(f"{self.names[port[0]][1]}: {port[1]}" for port in ports[_PORTS:])
            lines.append(_Line([(f"    and {len(ports) - _PORTS} more", "says")], rest))
        return lines

    def _port(self, side: str, port: Sequence[Any]) -> _Line:
        short, full = self.names[port[0]]
        pieces = [(f"{side:<4}", "side"), (f"{short}  ", "name"), (port[1], "type")]
        title = f"{full}: {port[1]}"
        if len(port) > 2:
            _, _, words, other, maker, made = port
            near, far = self.names[other] if other is not None else ("", "")
            arrow = "←" if side == "in" else "→"
            title += f"\n{arrow} {words.replace('#', far)}" + (f"\n{maker}" if maker else "")
            said = "" if (words, near) == ("#", short) else words.replace("#", near)
            said = ", ".join(part for part in (said, made) if part)
            if said:
                pieces.append((f"  {arrow} {said}", "says"))
        return _Line(pieces, title)


def _framed(style: str, lines: Sequence[_Line], inner: _Box | None) -> _Box:
    """Lines, and the inner box below them, in a frame."""
    text = len(lines) * _LINE
    width = max([line.width for line in lines] + ([inner.width] if inner else [])) + 2 * _PAD
    height = text + 2 * _PAD - 6 + (inner.height + _GAP - 4 if inner else 0)

    def draw(x: float, y: float) -> list[str]:
        found = [
            f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            'rx="9"/>'
        ]
        if style.startswith("body "):
            bar = f'x="{x:g}" y="{y + 9:g}" width="4" height="{height - 18:g}" rx="2"'
            found.append(f'<rect class="bar {style[5:]}" {bar}/>')
        for number, line in enumerate(lines):
            found += line.draw(x + _PAD, y + _PAD - 4 + number * _LINE)
        if inner is not None:
            found += inner.draw(x + _PAD, y + _PAD + text + 4)
        return found

    return _Box(width, height, draw)


def _arranged(boxes: Sequence[_Box], beside: bool = False) -> _Box | None:
    """Boxes below one another, or side by side."""
    if not boxes:
        return None
    widths, heights = [box.width for box in boxes], [box.height for box in boxes]
    gaps = _GAP * (len(boxes) - 1)

    def draw(x: float, y: float) -> list[str]:
        found: list[str] = []
        for box in boxes:
            found += box.draw(x, y)
            x += box.width + _GAP if beside else 0
            y += 0 if beside else box.height + _GAP
        return found

    if beside:
        return _Box(sum(widths) + gaps, max(heights), draw)
    return _Box(max(widths), sum(heights) + gaps, draw)
