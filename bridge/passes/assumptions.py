"""What is assumed of data where a branch of an If is pruned: that they take the other one."""

from __future__ import annotations

import re

from bridge.errors import UsageError
from bridge.neutral.expression import expression
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.ports import Carried, Invariant, Sliced
from bridge.report import Report

_EQUAL = re.compile(r"([^\s()\[\]]+) == (-?[\d.]+)")
"""An assumption that fixing an input fulfils."""


def note_pruned(graph: Graph, node: Node, gone: int, line: str, report: Report) -> None:
    """Reports a pruned branch: in a line, and with what is assumed if data decide the If. `graph`
    is the top graph."""
    report.pruned.append(line)
    (condition,) = node.inputs[:1]
    outer = _outer_values(graph)
    if condition is None or not _is_decided_by_data(condition, graph, outer):
        return
    text = expression(condition, lambda value: value.name, outer)
    if gone == 0:
        text = f"not ({text})" if " " in text else f"not {text}"
    report.assumed[line] = text


def require_nothing_assumed(report: Report) -> None:
    """Raises UsageError with what is assumed of data, and what would say so."""
    if not report.assumed:
        return
    lines = ["a branch that data could take would be pruned; strict refuses that:"]
    for line, text in report.assumed.items():
        equal = _EQUAL.fullmatch(text)
        given = f"{equal[1]}={equal[2]}" if equal else "NAME=VALUE"
        lines += [
            f"  {line}",
            f"    only {text} would be left; say so (--value {given}), or leave shapes open",
        ]
    raise UsageError("\n".join(lines))


def _outer_values(graph: Graph) -> dict[Value, Value]:
    """The value around a body that each input of the body is, or begins with."""
    found = {}
    for node in graph.walk():
        for body in node.bodies:
            for value, port in body.entries():
                if isinstance(port, Invariant | Carried | Sliced) and port.input is not None:
                    outer = node.inputs[port.input]
                    if outer is not None:
                        found[value] = outer
    return found


def _is_decided_by_data(condition: Value, graph: Graph, outer: dict[Value, Value]) -> bool:
    """Whether the elements of an input of the model, rather than shapes, decide a condition."""
    todo, seen = [condition], set[Value]()
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in graph.inputs:
            return True
        if value in outer:
            todo.append(outer[value])
        node = value.producer
        if node is not None and node.op not in ("Shape", "Size", "Constant"):
            todo += [given for given in node.inputs if given is not None]
            todo += [out for body in node.bodies for out in body.graph.outputs]
    return False
