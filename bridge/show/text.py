"""The description of a model as text for people."""

from collections.abc import Iterator, Sequence

from bridge.errors import amount, text_of
from bridge.records.entry import Json
from bridge.show.outline import format_of
from bridge.show.short import short


def as_text(description: Json) -> str:
    """The text of `bridge inspect`: a paragraph for each part, nested bodies indented."""
    return text_of(_lines(description))


def _lines(model: Json) -> Iterator[str]:
    constants = model["constants"]
    format = format_of(model["format"], model.get("opset"), model.get("domains", {}))
    yield f"{model['file']}: {format}"
    for part in ("inputs", "outputs"):
        yield f"{part}:"
        yield from _columns(
            [(value["name"], _type(value) + _default(value)) for value in model[part]]
        )
    yield "operators:"
    yield from _columns([(name, str(count)) for name, count in model["operators"].items()])
    yield f"constants: {constants['count']} ({constants['bytes']:,} bytes)"
    if model["control_flow"]:
        yield "control flow:"
        yield from _control_flow(model["control_flow"], "  ")


def _default(value: Json) -> str:
    return " (has a default)" if value.get("has_default") else ""


def _type(value: Json) -> str:
    if "item" in value:
        return f"{value['kind']}({_type(value['item'])})"
    if value["kind"] != "tensor":
        return str(value["kind"])
    shape = "*" if value["shape"] is None else ",".join(map(str, value["shape"]))
    return f"{value['element'] or '?'}[{shape}]"


def _columns(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        yield f"  {name.ljust(width)}  {text}"


def _control_flow(nodes: Sequence[Json], pad: str) -> Iterator[str]:
    for node in nodes:
        yield f'{pad}{node["operator"]} "{short(node["name"])}": {node["says"]}'
        for body in node["bodies"]:
            yield f"{pad}  {body['role']} ({amount(body['nodes'], 'node')})"
            for value in body["inputs"]:
                yield f"{pad}    in  {_short(value['name'])}: {_type(value)}{_source(value)}"
            for value in body["outputs"]:
                yield f"{pad}    out {_short(value['name'])}: {_type(value)}{_sink(value)}"
            yield from _control_flow(body["control_flow"], pad + "    ")


def _source(value: Json) -> str:
    match value["port"]:
        case "invariant":
            return f" <- {_short(value['from'])}"
        case "carried":
            return f" <- {_short(value['from']) or 'true'}, then {_short(value['next'])}"
        case "sliced":
            return f" <- slices of {_short(value['from'])}, {_slices(value)}"
    return " <- number of the iteration"


def _sink(value: Json) -> str:
    match value["port"]:
        case "yield":
            return f" -> {_short(value['to'])}"
        case "stacked":
            return f" -> joined into {_short(value['to'])}, {_slices(value)}"
        case "condition":
            return " -> whether to go on"
    return " -> next iteration"


def _short(name: str | None) -> str:
    return short(name or "")


def _slices(port: Json) -> str:
    text = f"axis {port['axis']}"
    if (port["start"], port["end"], port["stride"]) != (0, -1, 1):
        text += f", {port['start']} to {port['end']} by {port['stride']}"
    return text + (f", {port['part_size']} at a time" if port["part_size"] != 1 else "")
