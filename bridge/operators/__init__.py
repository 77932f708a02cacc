"""Operators: their meaning in the other format, their types, and their known content.

There is one folder per family, named as in `mappings/<family>.toml`. A file has one operator or a
few similar ones: the rules of both directions, inference and known content. The files of a family
are imported at the first operator of the family.

A rule for reading turns a format's node into neutral nodes. A rule for expanding turns a neutral
node into nodes of the target. Rules are pure functions: they return nodes and do not change the
given node or its bodies. The two specifications alone determine a rule. Rows in `mappings/`
describe all other operators. Rules import all their tools from this module; short forms of
operators are methods of `Builder`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from bridge.errors import LimitError
from bridge.limits import budget, limited
from bridge.neutral import inference
from bridge.neutral.builder import Builder as Builder, Refused as Refused, Target
from bridge.neutral.graph import Node as Node, Value as Value
from bridge.neutral.inference import BREAKS as BREAKS
from bridge.neutral.inference.computed import Array, compute_by
from bridge.neutral.inference.known import known_of
from bridge.neutral.rewrite import Result as Result
from bridge.neutral.types import UNKNOWN, Type
from bridge.operators import standard
from bridge.operators.reading import applied
from bridge.operators.schemas import NEWEST as NEWEST
from bridge.vocabulary import families, families_of_type, family_of, operator

Rule = Callable[[Builder, Node], Result]


@dataclass(eq=False)
class ReadingRule:
    """A rule for reading, and the versions of the format that it reads."""

    rule: Rule
    since: int
    until: int


legalizations: dict[tuple[str, str], Rule] = {}
readers: dict[tuple[str, str], list[ReadingRule]] = {}


def legalizes(*ops: str, target: str) -> Callable[[Rule], Rule]:
    """Registers the rule that rewrites neutral operators for a target format ("onnx" or "ir").

    The rule runs before the mapping row; if it returns None, the row is used. Its new nodes are
    expanded again. A rule for an operator that makes the same operator must therefore return None
    for the new one. A rule that always refuses has the return type NoReturn, because listings read
    it.
    """

    def register(rule: Rule) -> Rule:
        for op in ops:
            if (target, op) in legalizations:
                raise ValueError(f"{op} has two rules for {target}")
            legalizations[target, op] = rule
        return rule

    return register


def reads(*types: str, format: str, since: int = 1, until: int = NEWEST) -> Callable[[Rule], Rule]:
    """Registers a rule that reads nodes of a format, for operator sets `since` to `until`.

    The node has the type, inputs and attributes of the format and belongs to no graph. Attributes
    are decoded (ONNX) or strings (IR). If the rule returns None, the mapping row is used.
    """

    def register(rule: Rule) -> Rule:
        for type in types:
            known = readers.setdefault((format, type), [])
            if any(since <= r.until and r.since <= until for r in known):
                raise ValueError(f"{format} {type} has two readers for one operator set")
            known.append(ReadingRule(rule, since, until))
        return rule

    return register


def unforeseen(error: Exception) -> str:
    """The message for a node that broke a rule (BREAKS)."""
    text = f", {error}" if str(error) else ""
    return f"its inputs and attributes do not go together ({type(error).__name__}{text})"


def ranks(node: Node, *indices: int) -> list[int]:
    """The ranks of the node's inputs; Refused if one is unknown."""
    known = []
    for index in indices:
        value = node.inputs[index]
        if value is None or value.rank is None:
            raise Refused(
                f"the rank of its input {index} is not known; declare the graph's input shapes"
            )
        known.append(value.rank)
    return known


def ranked(node: Node) -> tuple[Value, int]:
    """Input 0 and its rank; Refused if the input is absent or the rank is unknown."""
    return node.operand(0), ranks(node, 0)[0]


def required(node: Node, *indices: int) -> list[Value]:
    """The inputs at `indices`; Refused if one is absent."""
    return [node.operand(index) for index in indices]


def attributes_beside(node: Node, *names: str) -> dict[str, Any]:
    """The attributes of a node beside those named, to hand them on to another node."""
    return {name: value for name, value in node.attributes.items() if name not in names}


@cache
def _import_family(family: str) -> None:
    for path in sorted((Path(__file__).parent / family).glob("[!_]*.py")):
        import_module(f".{family}.{path.stem}", __package__)


@cache
def load(op: str) -> None:
    """Imports the rules, inference and known content of a neutral operator."""
    family = family_of(op)
    if family is not None:
        _import_family(family)


@cache
def _load_readers(format: str, type: str) -> None:
    for family in families_of_type(format, type):
        _import_family(family)


def load_all() -> None:
    """Imports every family, for listings and tests. A family without a folder has only rows."""
    for family in families():
        _import_family(family)


def legalization(target: str, op: str) -> Rule | None:
    """The rule that rewrites `op` for `target`, if there is one."""
    load(op)
    return legalizations.get((target, op))


def reader(format: str, type: str, version: int) -> Rule | None:
    """The rule that reads nodes of `type` in operator set `version` of `format`, if any."""
    _load_readers(format, type)
    for found in readers.get((format, type), ()):
        if found.since <= version <= found.until:
            return found.rule
    return None


def infer_by_rule(node: Node) -> Sequence[Type]:
    """The output types of a node, from the nodes that a rule makes. An operator that only IR has
    uses its rule for ONNX. An operator without a row, as onnxruntime's own operators, uses its rule
    for IR. [] if there is no rule, or it refuses."""
    target = Target("onnx", NEWEST) if operator(node.op) is not None else Target("ir")
    rule = legalization(target.format, node.op)
    if rule is None:
        return []
    if target.format == "ir":
        rule = partial(applied, rule)
    try:
        # The nodes that the rule makes are not used.
        with limited(budget().limits), Builder([], node.name, target) as b:
            made = rule(b, node)
    except (Refused, LimitError):
        return []
    values = [made] if isinstance(made, Value) else made or []
    return [UNKNOWN if value is None else value.type for value in values]


def _compute(node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
    """The outputs of a node for known inputs. ONNX computes the node, or the nodes that its rule
    for ONNX makes."""
    rule = legalization("onnx", node.op)
    made: Result = None
    if rule is not None:
        try:
            with limited(budget().limits), Builder([], node.name, Target("onnx", NEWEST)) as b:
                made = rule(b, node)
        except (Refused, LimitError, *BREAKS):
            return ()
    if made is None:
        return standard.compute_node()(node, arrays)
    values = [made] if isinstance(made, Value) else made
    return [known_of(value).array for value in values]


inference.provide(load, infer_by_rule)
compute_by(_compute)
