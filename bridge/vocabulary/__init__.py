"""The neutral vocabulary: operators and how each format spells them, read from `mappings/*.toml`.

A row of a mapping file, in full:

    [ReduceSum]                               # the neutral name
    inputs = ["data", "axes?"]                # ? optional, * variadic (last only)
    outputs = ["reduced"]                     # the default is one output; ? and * as above
    attributes = { keepdims = "bool = true" } # "TYPE", "TYPE = DEFAULT" or "TYPE?" (may be absent)
    traits = ["keeps_rank"]                   # facts for passes: see TRAITS
    shaped_by = ["axes"]                      # inputs whose elements decide the outputs' shapes
    integers = { axes = "i64" }               # integer types of inputs in ONNX: i64, or either
    indexes = { axes = "axes of data" }       # what inputs of places, axes or counts may be
    values = { indices = "distinct" }         # what it demands of the elements of inputs
    types = ["data like data"]                # the types of the outputs, if they can be stated
    onnx = [                                  # spellings, one or a list, newest first
      { since = 13 },
      { since = 1, as_attributes = { axes = "ints?" } },
    ]
    ir = { opset = 1, attributes = { keepdims = "keep_dims" } }

Attribute types: int, float, bool, string, ints, floats, strings, element, tensor, type; or the
allowed strings, `mode = "nearest | linear = nearest"`.

A type of an output has an element type and a shape. The element type is `f32`, or it is taken from
an attribute or an input; `output_dtype|x` is the first known one. The shape is `like x`, equal to
an input's shape; or `of x`, with the elements of an input as dimensions; or `broadcast`, of all
inputs; or a list `[x.0, ?, hidden_size, n, 3]`. Its items are a dimension of an input, any, an
attribute, the first element of an input, or a number; or a product, `x.0*count`.

An input of indexes has places from 0 in an axis of another input: `data[axis]`, where `axis` is an
attribute, an input or a number; or counts of its elements from 1, `1..data[axis]`. Or it has `axes
of x`, an input or the output, or `axes before the last of x`; rows of places, `places in x`; or
numbers `under x`, an input; or places of the `bits of x`.

Values are `sorted` along the last axis; or places that are `distinct`, unless a reduction joins
what is at one place; or rows of `boxes`, of two corners that are apart; or `regions`, boxes behind
the number of an image of the first input.

Keys of a spelling:

- `type`: the format's name for it, if it differs. `domain` (ONNX): if it is not the default one.
- `since` (ONNX): first operator set with this spelling; `until`: last one, if it was removed.
- `opset` (IR): the operator set it is written with (a number, or a string for an extension);
  `reads`: other operator sets with the same meaning.
- `inputs`: the neutral inputs in this format's order, if that differs.
- `as_attributes`: neutral inputs that are attributes here: `axes = "ints = []"`, or
  `axes = { name = "axis", type = "int", default = 0 }`. They must be constants to be written.
  As inputs they have the type of the first input if the operator has the trait `same_type`.
- `attributes`: `neutral = "spelled"`, or `neutral = { name = "spelled", values = { a = "b" } }`
  (a bool turned round: `values = { true = "false", false = "true" }`);
  `name = ["pads_begin", "pads_end"]` splits a list in halves; `type` and `default` override.
- `absent`: neutral attributes this format lacks: they must have their default to be written.
- `fixed`: attributes that are always written so; a node must have them to be read here.
- `elements`: `{ input = ["f32", ...] }` element types that the format allows, if it limits them.

The family of an operator is the file of its row. A file may begin with `domains`: operators of
these ONNX domains are of this family without rows. It may also have `reads`: types of ONNX's own
domain that it reads although the vocabulary has no such word. `ignored.TYPE.attribute = VALUE` is
an attribute that means nothing to Bridge if it has this value, or "any value"; all others are read
by a row or a rule. `layers.TYPE.attribute = "TYPE = DEFAULT"` are the attributes of versions of a
layer of IR that have a rule and no row. Defaults of IR are those of OpenVINO's reader.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bridge.vocabulary.elements import ELEMENTS

REQUIRED: Any = object()
"""The default of an attribute that has none and must be given."""


ANY_VALUE = "any value"
"""The value of an ignored attribute that may have every value."""


TRAITS = {
    "adds_products": "its kernels add products of its data and weights",
    "along_axes": "unnamed axes of size 1 change no element, if they stand at the end from which "
    "none of its axes count",
    "broadcasts": "its inputs are broadcast to one shape, numpy's way",
    "by_element": "its outputs have the shape of input 0 and say something of each of its elements",
    "commutes": "its two inputs may change places",
    "elements_of_all": "its output has the elements of its inputs",
    "elements_of_first": "its output has the elements of input 0, or some of them",
    "exact_on_integers": "it leaves integers as they are",
    "fails_for_sizes": "it may fail for some sizes of its inputs",
    "fixed_weights": "OpenVINO wants weights of fixed sizes, or reorders them once",
    "gives_i64": "in ONNX its output is i64 alone",
    "in_order": "its output has all elements of input 0 in their order, perhaps of another shape "
    "or type",
    "joins_kernel": "OpenVINO joins it with a kernel in front",
    "keeps_rank": "output 0 has the rank of input 0",
    "known_value_of_any_rank": "its function of known values takes any rank, not vectors alone",
    "low_precision": "OpenVINO computes it in integers of 8 bits, or what it becomes for OpenVINO",
    "moves": "its output has each element of input 0 once; whole axes move at most",
    "never_fails": "it fails for no elements, if the inputs that shape its outputs are known",
    "not_negative": "its result is never negative",
    "not_negative_of_all": "its result is not negative if no input is negative",
    "one_rank": "all its inputs have one rank",
    "passes_scale": "dequantised values pass it before they meet a kernel",
    "quantizes": "it rounds real numbers to a few levels",
    "reads_shape": "its output depends on the shape of input 0 alone",
    "reals_in_f32": "its rule for ONNX computes real numbers in f32, as OpenVINO does",
    "reals_run_wider": "if ONNX does not allow its type of real numbers, it runs in a wider one",
    "recorded": "IR says it with others that ONNX has too; an IR keeps which of them it was",
    "recorded_of_constants": "as recorded, where all of its inputs are constants",
    "recurrent": "it is a recurrent layer, or one step of it",
    "repeats": "its output has each element of input 0, perhaps several times",
    "rounds_integers": "of integers OpenVINO computes it in f32, and rounds",
    "runs_wider": "if ONNX does not allow its element type, it runs in a wider one",
    "same_type": "its outputs have the type of input 0",
    "shape_of_first": "output 0 has the shape of input 0",
    "shrinks": "its results may be small though its operands are large",
    "view": "its output has the elements of input 0 in their order; only its shape is another",
}
"""The traits that a row may have, with their meaning for the operator."""


@dataclass(eq=False)
class Attribute:
    """An attribute: `type`, `default` (REQUIRED, or None if it may be absent), and the allowed
    strings (() for any string, and for other types)."""

    name: str
    type: str
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()


@dataclass(eq=False)
class SpelledAttribute:
    """How a format spells one attribute. `names` has two names if a list is written in halves;
    `values` maps neutral strings (or bools) to the format's; `choices` are the format's strings."""

    names: tuple[str, ...]
    type: str
    default: Any = REQUIRED
    values: dict[Any, Any] | None = None
    choices: tuple[str, ...] = ()

    def neutral_value(self, spelled: Any) -> Any:
        """The neutral value of a value in the format."""
        for neutral, name in (self.values or {}).items():
            if name == spelled or (isinstance(name, str) and name.lower() == spelled.lower()):
                return neutral
        return spelled


@dataclass(eq=False)
class Spelling:
    """One way in which one format writes an operator; the module's docstring explains it.
    `places` has the index of each of `inputs` by its bare name; `required` are those that may not
    be absent. A `plain` spelling writes all inputs and attribute values as they are. `names` has
    all attributes by the format's names."""

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
    plain: bool = False
    names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.required = tuple(name for name in self.inputs if not name.endswith(("?", "*")))


@dataclass(eq=False)
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
    shaped_by: tuple[int, ...]
    integers: dict[str, str]
    indexes: dict[int, str]
    values: dict[int, str]
    types: tuple[str, ...]


def _places(inputs: Sequence[str]) -> dict[str, int]:
    return {declared.rstrip("?*"): index for index, declared in enumerate(inputs)}


def directory() -> Path:
    """The folder of the mappings: in the package, or beside it in a source tree."""
    installed = Path(__file__).parents[1] / "mappings"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "mappings"


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


def _spelled_attribute(
    neutral: Attribute | None, name: str, row: str | dict[str, Any]
) -> SpelledAttribute:
    """A spelled attribute. A string row is a name if the neutral attribute exists (it gives the
    type), else a type (`as_attributes`)."""
    if isinstance(row, str):
        if neutral is not None:
            return SpelledAttribute((row,), neutral.type, neutral.default, choices=neutral.choices)
        attribute = _attribute(name, row)
        return SpelledAttribute(
            (name,), attribute.type, attribute.default, choices=attribute.choices
        )
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
    choices = tuple(values.values()) if values else neutral.choices if neutral else ()
    return SpelledAttribute(
        (names,) if isinstance(names, str) else tuple(names), kind, default, values, choices
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
        key: _spelled_attribute(None, key, value)
        for key, value in row.get("as_attributes", {}).items()
    }
    own = tuple(row.get("inputs", ())) or tuple(
        i for i in inputs if i.rstrip("?*") not in as_attributes
    )
    absent = tuple(row.get("absent", ()))
    rows = row.get("attributes", {})
    if unknown := (set(rows) | set(absent)) - set(attributes):
        raise ValueError(f"mappings: {name}: no attributes {sorted(unknown)}")
    spelled = {
        key: _spelled_attribute(attribute, key, rows.get(key, key))
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
        plain=own == inputs
        and not (as_attributes or absent or row.get("elements"))
        and all(attribute.values is None for attribute in spelled.values()),
        names=frozenset(
            [
                *row.get("fixed", {}),
                *(n for s in (*spelled.values(), *as_attributes.values()) for n in s.names),
            ]
        ),
    )


_KEYS = {
    "inputs", "outputs", "attributes", "onnx", "ir", "traits", "shaped_by", "integers", "indexes",
    "types", "values",
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
        return tuple(_spelling(name, inputs, attributes, r) for r in _listed(row, format))

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
        shaped_by=tuple(_places(inputs)[item] for item in row.get("shaped_by", ())),
        integers=row.get("integers", {}),
        indexes={_places(inputs)[item]: form for item, form in row.get("indexes", {}).items()},
        values={_places(inputs)[item]: form for item, form in row.get("values", {}).items()},
        types=tuple(row.get("types", ())),
    )


def _listed(row: dict[str, Any], format: str) -> list[dict[str, Any]]:
    """The spellings of a format in a row; a single one may stand without brackets."""
    spellings = row.get(format, [])
    return spellings if isinstance(spellings, list) else [spellings]


@cache
def _texts() -> dict[str, str]:
    """The text of each family's mapping file."""
    files = sorted(directory().glob("*.toml"))
    return {file.stem: file.read_text(encoding="utf-8") for file in files}


_HEADING = re.compile(r'^\[+(?:"(.+?)"|(\w+))', re.MULTILINE)
"""The heading of a row, or of a part of it as `[Gelu.ir]`."""


@cache
def _parts(family: str) -> dict[str, str]:
    """The text of each row of a family's file by operator, and of what stands before them by "".
    Rows are parsed one by one: parsing all of a file takes longer than many a conversion."""
    text = _texts()[family]
    headings = [*_HEADING.finditer(text)]
    ends = [*(heading.start() for heading in headings), len(text)]
    parts = {"": text[: ends[0]]}
    for heading, end in zip(headings, ends[1:], strict=True):
        name = heading[1] or heading[2]
        parts[name] = parts.get(name, "") + text[heading.start() : end]
    return parts


@cache
def _head(family: str) -> dict[str, Any]:
    """What stands before the rows of a family's file."""
    return tomllib.loads(_parts(family)[""])


@cache
def ignored_attributes(type: str) -> dict[str, Any]:
    """The attributes of an operator, by its type in either format or its neutral name, that may
    go unread, with the values that they must then have."""
    bare = type.rpartition("::")[2]
    found = {
        "consumed_inputs": ANY_VALUE,  # a hint of ONNX's first operator set
        "auto_broadcast.auto_broadcast_axis": ANY_VALUE,  # OpenVINO's reader takes 0
    }
    for family in _families_that_name(type) or _families_that_name(bare):
        found |= _head(family).get("ignored", {}).get(type, {})
    return found


def _names(family: str) -> list[str]:
    """The operators of a family."""
    return [name for name in _parts(family) if name]


@cache
def _families_that_name(word: str, any_case: bool = False) -> tuple[str, ...]:
    """The families whose files have `word` as a string or a heading. Only these can have a row
    for it."""
    texts = _folded_texts() if any_case else _texts()
    forms = (f'"{word}"', f"[{word}]")
    return tuple(family for family, text in texts.items() if any(form in text for form in forms))


@cache
def _folded_texts() -> dict[str, str]:
    return {family: text.lower() for family, text in _texts().items()}


def families() -> tuple[str, ...]:
    """The names of all families."""
    return tuple(_texts())


def operators_of(family: str) -> dict[str, Operator]:
    """The operators of a family by their neutral names."""
    return {name: _row(family, name) for name in _names(family)}


@cache
def operators() -> dict[str, Operator]:
    """Every operator of the vocabulary by its neutral name: for listings."""
    return {name: row for family in families() for name, row in operators_of(family).items()}


@cache
def _row(family: str, op: str) -> Operator:
    return _operator(op, tomllib.loads(_parts(family)[op])[op], family)


@cache
def operator(op: str) -> Operator | None:
    """The operator with a neutral name; None for a name outside the vocabulary."""
    found = [family for family in _families_that_name(op) if op in _parts(family)]
    if len(found) > 1:
        raise ValueError(f"mappings: {op} is in {' and in '.join(found)}")
    return _row(found[0], op) if found else None


@cache
def traits_of(op: str) -> frozenset[str]:
    """The traits of a neutral operator; none without a row."""
    row = operator(op)
    return frozenset() if row is None else row.traits


def has_trait(op: str, trait: str) -> bool:
    """Whether the row of a neutral operator has a trait; see TRAITS."""
    return trait in traits_of(op)


@cache
def family_of(op: str) -> str | None:
    """The family of a neutral operator, or of one of a domain that a family covers; None for
    any other."""
    row = operator(op)
    return row.family if row is not None else _family_of_domain(op.rpartition("::")[0])


def _family_of_domain(domain: str) -> str | None:
    """The family that covers a domain of ONNX without rows."""
    named = _families_that_name(domain) if domain else ()
    return next((f for f in named if domain in _head(f).get("domains", ())), None)


@cache
def families_of_type(format: str, type: str) -> tuple[str, ...]:
    """The families that may read nodes of `type` (`domain::Type` outside ONNX's own domain)."""
    domain, _, bare = type.rpartition("::")
    covering = _family_of_domain(domain)
    if covering is not None:
        return (covering,)
    spelled = (
        row.family
        for row in _spelled(bare)
        for spelling in (row.onnx if format == "onnx" else row.ir)
        if spelling.type == bare and spelling.domain == domain
    )
    further = (f for f in _families_that_name(type) if type in _head(f).get("reads", ()))
    return tuple(dict.fromkeys((*spelled, *further)))


def _spelled(type: str) -> list[Operator]:
    """The operators whose rows name this type: all that a format spells so are among them."""
    return [
        _row(family, name)
        for family in _families_that_name(type)
        for name, text in _parts(family).items()
        if name and (name == type or f'"{type}"' in text)
    ]


@cache
def onnx_rows(domain: str, type: str) -> list[tuple[Operator, Spelling]]:
    """The rows of a type of one of ONNX's domains, newest spelling first."""
    rows = [
        (row, spelling)
        for row in _spelled(type)
        for spelling in row.onnx
        if spelling.type == type and spelling.domain == domain
    ]
    return sorted(rows, key=lambda found: -int(found[1].version))


@cache
def _ir_rows(type: str) -> dict[str, list[tuple[Operator, Spelling]]]:
    """The rows of a layer type by operator set ("opset1", ..., or an extension's name)."""
    table: dict[str, list[tuple[Operator, Spelling]]] = {}
    for row in _spelled(type):
        for spelling in row.ir:
            if spelling.type == type:
                for version in (spelling.version, *spelling.reads):
                    table.setdefault(ir_opset(version), []).append((row, spelling))
    return table


@cache
def ir_rows(type: str, version: str) -> list[tuple[Operator, Spelling]]:
    """The rows of a layer type in an operator set, from its newest version in this set, because an
    operator set has all operators of earlier sets."""
    table = _ir_rows(type)
    rows = table.get(version)
    number = version.removeprefix("opset")
    if rows is None and number.isdigit():
        older = (table.get(ir_opset(n)) for n in range(int(number) - 1, 0, -1))
        rows = next((found for found in older if found), None)
    return rows or []


@cache
def layer_attributes(type: str, version: str) -> dict[str, SpelledAttribute]:
    """The attributes that the specification gives for a layer in an operator set, by name."""
    found: dict[str, SpelledAttribute] = {}
    rows = [spelling for _, spelling in ir_rows(type, version)]
    for row in rows:
        for spelled in (*row.attributes.values(), *row.as_attributes.values()):
            found |= {name: spelled for name in spelled.names if name not in found}
    for row in rows:
        for name, value in row.fixed.items():
            fixed = SpelledAttribute((name,), "string", value, choices=(value,))
            found.setdefault(name, fixed)
    if not rows:
        for family in _families_that_name(type):
            for name, text in _head(family).get("layers", {}).get(type, {}).items():
                found[name] = _spelled_attribute(None, name, text)
    return found


@cache
def ir_type(text: str) -> str:
    """A layer type as the vocabulary writes it, whatever the case of its letters; the text itself
    if it is none."""
    if _ir_rows(text):
        return text
    folded = text.lower()
    types = (
        spelling.type
        for family in _families_that_name(folded, any_case=True)
        for row in operators_of(family).values()
        for spelling in (*row.onnx, *row.ir)
        if spelling.type.lower() == folded
    )
    return next((type for type in types if _ir_rows(type)), text)


def ir_opset(version: int | str) -> str:
    """The `version` attribute of a layer: `opset8` for 8, an extension's name as it is."""
    return f"opset{version}" if isinstance(version, int) else version
