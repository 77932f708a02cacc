"""The neutral vocabulary: operators and how each format spells them, read from `mappings/*.toml`.

A row of a mapping file, in full:

    [ReduceSum]                               # the neutral name
    inputs = ["data", "axes?"]                # ? optional, * variadic (last only)
    outputs = ["reduced"]                     # the default is one output; ? and * as above
    attributes = { keepdims = "bool = true" } # "TYPE", "TYPE = DEFAULT" or "TYPE?" (may be absent)
    traits = ["keeps_rank"]                   # what passes ask of the operator: see TRAITS
    ranks = [3, 1]                            # the only ranks of its inputs, in order
    shaped_by = ["axes"]                      # inputs whose elements decide the outputs' shapes
    integers = { axes = "i64" }               # what ONNX allows of these inputs: i64, or either
    onnx = [                                  # spellings, one or a list, newest first
      { since = 13 },
      { since = 1, as_attributes = { axes = "ints?" } },
    ]
    ir = { opset = 1, attributes = { keepdims = "keep_dims" } }

Attribute types: int, float, bool, string, ints, floats, strings, element, tensor, type; or the
strings that it may be, `mode = "nearest | linear = nearest"`.

Keys of a spelling:

- `type`: the format's name for it, where it differs. `domain` (ONNX): where not the default one.
- `since` (ONNX): first operator set with this spelling; `until`: last one, where it was removed.
- `opset` (IR): the operator set it is written with (a number, or a string for an extension);
  `reads`: others that mean the same.
- `inputs`: the neutral inputs in this format's order, where that differs.
- `as_attributes`: neutral inputs that are attributes here: `axes = "ints = []"`, or
  `axes = { name = "axis", type = "int", default = 0 }`. They must be constants to be written.
- `attributes`: `neutral = "spelled"`, or `neutral = { name = "spelled", values = { a = "b" } }`
  (a bool turned round: `values = { true = "false", false = "true" }`);
  `name = ["pads_begin", "pads_end"]` splits a list in halves; `type` and `default` override.
- `absent`: neutral attributes this format lacks: they must have their default to be written.
- `fixed`: attributes that are always written so, and that a node must have so to be read here.
- `elements`: `{ input = ["f32", ...] }` element types that the format allows, where it matters.

The family of an operator is the file of its row. A file may begin with `domains`, ONNX's domains
whose operators are of this family without rows, and `reads`, types of ONNX's own domain that it
reads though the vocabulary has no such word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bridge.elements import ELEMENTS

REQUIRED: Any = object()
"""The default of an attribute that has none and must be given."""


TRAITS = {
    "along_axes": "axes of size 1 that it does not name change nothing, at the end from which none "
    "of its axes count",
    "broadcasts": "its inputs are broadcast to one shape, numpy's way",
    "by_element": "its outputs have the shape of input 0 and say something of each of its elements",
    "known_value_of_any_rank": "its function of known values takes any rank, not vectors alone",
    "elements_of_all": "its output has the elements of its inputs",
    "elements_of_first": "its output has the elements of input 0, or some of them",
    "exact_on_integers": "it leaves integers as they are",
    "gives_i64": "in ONNX its output is i64 alone",
    "keeps_rank": "output 0 has the rank of input 0",
    "not_negative": "its result is never negative",
    "not_negative_of_all": "its result is not negative where no input is",
    "reals_run_wider": "where ONNX does not allow its type of real numbers, it runs in a wider one",
    "recorded": "IR says it with others that ONNX has too; an IR keeps which of them it was",
    "runs_wider": "where ONNX does not allow its element type, it runs in a wider one",
}
"""The traits that a row may have, and what they say of its operator."""


@dataclass(frozen=True)
class Attribute:
    """An attribute: `type`, `default` (REQUIRED, or None where it may be absent), and the strings
    that it may be (() for any, and for other types)."""

    name: str
    type: str
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class SpelledAttribute:
    """How a format spells one attribute. `names` has two where a list is written in halves;
    `values` maps neutral strings (or bools) to the format's."""

    names: tuple[str, ...]
    type: str
    default: Any = REQUIRED
    values: dict[Any, Any] | None = None

    def neutral_value(self, spelled: Any) -> Any:
        """The neutral value of what the format writes."""
        for neutral, name in (self.values or {}).items():
            if name == spelled:
                return neutral
        return spelled


@dataclass(frozen=True)
class Spelling:
    """One way in which one format writes an operator; the module's docstring explains it.
    `places` has the index of each of `inputs` by its bare name."""

    type: str
    version: int | str
    until: int | None = None
    domain: str = ""
    reads: tuple[int | str, ...] = ()
    inputs: tuple[str, ...] = ()
    places: dict[str, int] = field(default_factory=dict)
    as_attributes: dict[str, SpelledAttribute] = field(default_factory=dict)
    attributes: dict[str, SpelledAttribute] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    fixed: dict[str, Any] = field(default_factory=dict)
    elements: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Operator:
    """A word of the vocabulary: signature and spellings, newest first. `places` has the index of
    each of `inputs` by its bare name."""

    name: str
    inputs: tuple[str, ...]
    places: dict[str, int]
    outputs: tuple[str, ...]
    attributes: dict[str, Attribute]
    defaults: dict[str, Any]
    onnx: tuple[Spelling, ...]
    ir: tuple[Spelling, ...]
    family: str
    traits: frozenset[str]
    ranks: tuple[int, ...]
    shaped_by: tuple[int, ...]
    integers: dict[str, str]


def _places(inputs: Sequence[str]) -> dict[str, int]:
    return {declared.rstrip("?*"): index for index, declared in enumerate(inputs)}


def _directory() -> Path:
    installed = Path(__file__).parent / "mappings"
    return installed if installed.is_dir() else Path(__file__).parent.parent / "mappings"


def _attribute(name: str, text: str) -> Attribute:
    kind, equals, default = text.partition("=")
    kind = kind.strip()
    if "|" in kind:
        choices = tuple(choice.strip() for choice in kind.split("|"))
        return Attribute(name, "string", default.strip() if equals else REQUIRED, choices)
    if equals:
        return Attribute(name, kind, _default(kind, default.strip()))
    if kind.endswith("?"):
        return Attribute(name, kind[:-1], None)
    return Attribute(name, kind)


def _default(kind: str, text: str) -> Any:
    if kind.endswith("s"):
        items = [item.strip() for item in text.strip("[]").split(",")]
        return tuple(_default(kind[:-1], item) for item in items if item)
    match kind:
        case "int":
            return int(text)
        case "float":
            return float(text)
        case "bool":
            return text == "true"
        case "element":
            return ELEMENTS[text]
    return text


def _spelled(neutral: Attribute | None, name: str, row: str | dict[str, Any]) -> SpelledAttribute:
    """A spelled attribute; a string row is a name where the neutral attribute exists (it gives
    the type), else a type (`as_attributes`)."""
    if isinstance(row, str):
        if neutral is not None:
            return SpelledAttribute((row,), neutral.type, neutral.default)
        attribute = _attribute(name, row)
        return SpelledAttribute((name,), attribute.type, attribute.default)
    names = row.get("name", name)
    kind: str = row.get("type", neutral.type if neutral else "")
    if neutral is None:
        attribute = _attribute(name, kind)
        kind, default = attribute.type, attribute.default
    else:
        default = neutral.default
    if "default" in row:
        default = row["default"]
        default = tuple(default) if isinstance(default, list) else default
    values = row.get("values")
    if values is not None:
        if neutral is not None and neutral.type == "bool":
            values = {key == "true": value for key, value in values.items()}
        if kind == "bool":
            values = {key: value == "true" for key, value in values.items()}
        if "default" not in row:
            default = values.get(default, default)
    return SpelledAttribute(
        (names,) if isinstance(names, str) else tuple(names), kind, default, values
    )


def _spelling(
    name: str, inputs: tuple[str, ...], attributes: dict[str, Attribute], row: dict[str, Any]
) -> Spelling:
    known = {
        "type", "since", "until", "opset", "reads", "domain", "inputs", "as_attributes",
        "attributes", "absent", "fixed", "elements",
    }  # fmt: skip
    if unknown := set(row) - known:
        raise ValueError(f"mappings: {name}: unknown keys {sorted(unknown)}")
    as_attributes = {
        key: _spelled(None, key, value) for key, value in row.get("as_attributes", {}).items()
    }
    own = tuple(row.get("inputs", ())) or tuple(
        i for i in inputs if i.rstrip("?*") not in as_attributes
    )
    absent = tuple(row.get("absent", ()))
    rows = row.get("attributes", {})
    if unknown := (set(rows) | set(absent)) - set(attributes):
        raise ValueError(f"mappings: {name}: no attributes {sorted(unknown)}")
    spelled = {
        key: _spelled(attribute, key, rows.get(key, key))
        for key, attribute in attributes.items()
        if key not in absent
    }
    return Spelling(
        type=row.get("type", name),
        version=row["opset"] if "opset" in row else row.get("since", 1),
        until=row.get("until"),
        domain=row.get("domain", ""),
        reads=tuple(row.get("reads", ())),
        inputs=own,
        places=_places(own),
        as_attributes=as_attributes,
        attributes=spelled,
        absent=absent,
        fixed=row.get("fixed", {}),
        elements={k: tuple(v) for k, v in row.get("elements", {}).items()},
    )


_KEYS = {
    "inputs", "outputs", "attributes", "onnx", "ir", "traits", "ranks", "shaped_by", "integers",
}  # fmt: skip


def _operator(name: str, row: dict[str, Any], family: str) -> Operator:
    if unknown := set(row) - _KEYS:
        raise ValueError(f"mappings: {name}: unknown keys {sorted(unknown)}")
    inputs = tuple(row.get("inputs", ()))
    attributes = {k: _attribute(k, v) for k, v in row.get("attributes", {}).items()}
    traits = frozenset(row.get("traits", ()))
    if wrong := traits - set(TRAITS):
        raise ValueError(f"mappings: {name}: unknown traits {sorted(wrong)}")

    def spellings(format: str) -> tuple[Spelling, ...]:
        rows = row.get(format, [])
        rows = rows if isinstance(rows, list) else [rows]
        return tuple(_spelling(name, inputs, attributes, r) for r in rows)

    return Operator(
        name=name,
        inputs=inputs,
        places=_places(inputs),
        outputs=tuple(row.get("outputs", ("output",))),
        attributes=attributes,
        defaults={k: a.default for k, a in attributes.items() if a.default is not REQUIRED},
        onnx=spellings("onnx"),
        ir=spellings("ir"),
        family=family,
        traits=traits,
        ranks=tuple(row.get("ranks", ())),
        shaped_by=tuple(_places(inputs)[item] for item in row.get("shaped_by", ())),
        integers=row.get("integers", {}),
    )


_TYPE = re.compile(r'\btype\s*=\s*"([^"]+)"')


@dataclass(frozen=True)
class _Index:
    """What the text of the mapping files tells before it is parsed, which takes time: where each
    family's file begins, the family and the text of each operator's row, and the operators whose
    rows may spell a type."""

    beginnings: dict[str, str]
    families: dict[str, str]
    rows: dict[str, str]
    spelling: dict[str, tuple[str, ...]]


@cache
def _index() -> _Index:
    beginnings: dict[str, str] = {}
    families: dict[str, str] = {}
    rows: dict[str, str] = {}
    spelling: dict[str, dict[str, None]] = {}
    for path in sorted(p for p in _directory().iterdir() if p.suffix == ".toml"):
        family, text = path.stem, path.read_text(encoding="utf-8")
        beginning, *parts = f"\n{text}".split("\n[")
        beginnings[family] = beginning
        for part in parts:
            name = part.removeprefix("[")
            if name[0] == '"':
                op = name.split('"', 2)[1]
            else:
                op = name.partition("]")[0].partition(".")[0]
            if families.setdefault(op, family) != family:
                raise ValueError(f"mappings: {op} is in {families[op]} and in {family}")
            rows[op] = f"{rows.get(op, '')}[{part}\n"
            spelled = _TYPE.findall(part) if "type" in part else ()
            for type in (op.rpartition("::")[2], *spelled):
                spelling.setdefault(type, {})[op] = None
    return _Index(
        beginnings, families, rows, {type: tuple(found) for type, found in spelling.items()}
    )


@dataclass(frozen=True)
class _Beginning:
    """What a mapping file says of operators without rows."""

    domains: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


@cache
def _beginnings() -> dict[str, _Beginning]:
    """The families that say something of operators without rows."""
    parsed = {family: tomllib.loads(text) for family, text in _index().beginnings.items()}
    return {
        family: _Beginning(**{key: tuple(names) for key, names in table.items()})
        for family, table in parsed.items()
        if table
    }


def families() -> tuple[str, ...]:
    """The names of all families."""
    return tuple(_index().beginnings)


@cache
def operators_of(family: str) -> dict[str, Operator]:
    """The operators of a family by their neutral names."""
    return {op: _row(op) for op, other in _index().families.items() if other == family}


@cache
def operators() -> dict[str, Operator]:
    """Every operator of the vocabulary by its neutral name: for listings."""
    return {name: row for family in families() for name, row in operators_of(family).items()}


@cache
def _row(op: str) -> Operator:
    index = _index()
    ((name, row),) = tomllib.loads(index.rows[op]).items()
    return _operator(name, row, index.families[op])


@cache
def operator(op: str) -> Operator | None:
    """The operator of a neutral name; None for a name that is no word of the vocabulary."""
    return _row(op) if op in _index().families else None


def has_trait(op: str, trait: str) -> bool:
    """Whether the row of a neutral operator has a trait; see TRAITS."""
    row = operator(op)
    return row is not None and trait in row.traits


def family_of(op: str) -> str | None:
    """The family of a neutral operator, or of one of a domain that a family covers; None for
    any other."""
    return _index().families.get(op) or _families_of_domains().get(op.rpartition("::")[0])


def _that_spell(type: str) -> list[Operator]:
    """The operators whose rows may spell a type."""
    return [_row(op) for op in _index().spelling.get(type, ())]


@cache
def families_of_type(format: str, type: str) -> tuple[str, ...]:
    """The families that may read nodes of `type` (`domain::Type` outside ONNX's own domain)."""
    domain, _, bare = type.rpartition("::")
    if domain in _families_of_domains():
        return (_families_of_domains()[domain],)
    spelled = (
        row.family
        for row in _that_spell(bare)
        for spelling in (row.onnx if format == "onnx" else row.ir)
        if spelling.type == bare and spelling.domain == domain
    )
    further = (family for family, said in _beginnings().items() if type in said.reads)
    return tuple(dict.fromkeys((*spelled, *further)))


@cache
def _families_of_domains() -> dict[str, str]:
    return {domain: family for family, said in _beginnings().items() for domain in said.domains}


@cache
def onnx_rows(domain: str, type: str) -> list[tuple[Operator, Spelling]]:
    """The rows of a type of one of ONNX's domains, newest spelling first."""
    rows = [
        (row, spelling)
        for row in _that_spell(type)
        for spelling in row.onnx
        if spelling.type == type and spelling.domain == domain
    ]
    return sorted(rows, key=lambda found: -int(found[1].version))


@cache
def _ir_rows(type: str) -> dict[str, list[tuple[Operator, Spelling]]]:
    """The rows of a layer type by operator set ("opset1", ..., or an extension's name)."""
    table: dict[str, list[tuple[Operator, Spelling]]] = {}
    for row in _that_spell(type):
        for spelling in row.ir:
            if spelling.type == type:
                for version in (spelling.version, *spelling.reads):
                    table.setdefault(ir_opset(version), []).append((row, spelling))
    return table


@cache
def ir_rows(type: str, version: str) -> list[tuple[Operator, Spelling]]:
    """The rows of a layer type in an operator set: those of the newest version that it holds,
    since an operator set has all operators of the ones before."""
    table = _ir_rows(type)
    rows = table.get(version)
    number = version.removeprefix("opset")
    if rows is None and number.isdigit():
        older = (table.get(ir_opset(n)) for n in range(int(number) - 1, 0, -1))
        rows = next((found for found in older if found), None)
    return rows or []


@cache
def ir_type(text: str) -> str:
    """A layer type as the vocabulary writes it, whatever the case of its letters; the text itself
    where it is none."""
    if _ir_rows(text):
        return text
    folded = text.lower()
    return next((t for t in _index().spelling if t.lower() == folded and _ir_rows(t)), text)


def ir_opset(version: int | str) -> str:
    """The `version` attribute of a layer: `opset8` for 8, an extension's name as it is."""
    return f"opset{version}" if isinstance(version, int) else version
