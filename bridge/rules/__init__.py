"""Rules in Python for operators that differ in shape between the formats.

One file per family of operators; both directions of one operator stand side by side. A rule for
reading turns a format's node into neutral nodes; a rule for expanding turns a neutral node into
nodes that the target has. Rows in `mappings/` do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value

Result = Value | Sequence[Value | None] | None
"""What a rule gives: the values that take the place of the node's outputs (None for one that is
not used), or None where the rule does not apply."""

Rule = Callable[[Builder, Node], Result]


@dataclass(frozen=True)
class Registered:
    """A rule and the versions of the format in which it holds."""

    rule: Rule
    since: int
    until: int


class Refused(Exception):
    """Raised by a rule for a node that the target cannot express: why, and what would help."""


_expansions: dict[tuple[str, str], list[Rule]] = {}
_readers: dict[tuple[str, str], list[Registered]] = {}

NEWEST = 1 << 30


def expands(*ops: str, target: str, first: bool = False) -> Callable[[Rule], Rule]:
    """Registers a rule that rewrites neutral operators for a target format ("onnx" or "ir").

    The rule is asked before the mapping row; where it gives None, the row is used. What it makes
    is expanded in turn, so a rule that makes the operator it is for must give None for that.

    Rules of one operator are asked in the order in which their file has them; those of several
    files must not depend on each other, but for the ones that come `first`: rules for many
    operators, which bring inputs to types that the target takes, so that the others need not.
    """

    def register(rule: Rule) -> Rule:
        for op in ops:
            rules = _expansions.setdefault((target, op), [])
            rules.insert(0 if first else len(rules), rule)
        return rule

    return register


def reads(*types: str, format: str, since: int = 1, until: int = NEWEST) -> Callable[[Rule], Rule]:
    """Registers a rule that reads nodes of a format, for operator sets `since` to `until`.

    The node has the format's own type, inputs and attributes (ONNX: decoded; IR: strings) and is
    not part of any graph. Where the rule gives None, the mapping row is used.
    """

    def register(rule: Rule) -> Rule:
        for type in types:
            _readers.setdefault((format, type), []).append(Registered(rule, since, until))
        return rule

    return register


@cache
def _load() -> None:
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem != "__init__":
            import_module(f"{__name__}.{path.stem}")


def expansions(target: str, op: str) -> Sequence[Rule]:
    """The rules that rewrite `op` for `target`, in the order in which they are asked."""
    _load()
    return _expansions.get((target, op), ())


def readers(format: str, type: str, version: int) -> list[Rule]:
    """The rules that read nodes of `type` in operator set `version` of `format`."""
    _load()
    return [
        r.rule for r in _readers.get((format, type), ()) if r.since <= version <= r.until
    ]  # fmt: skip


def types_read(format: str) -> set[str]:
    """The types of a format that any rule reads."""
    _load()
    return {type for f, type in _readers if f == format}
