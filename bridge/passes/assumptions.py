"""Assumptions about data: a pruned branch of an If is assumed never to be taken."""

import json
import re

from bridge.errors import UsageError
from bridge.neutral.expression import expression
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.rewrite import Rewriter
from bridge.options.spoken import keyword
from bridge.report import Report
from bridge.vocabulary import has_trait

_EQUAL = re.compile(r"([^\s()\[\]]+) == (-?[\d.]+)")
"""An assumption that fixing an input fulfils."""


def note_pruned(rewriter: Rewriter, node: Node, gone: int, line: str, report: Report) -> None:
    """Reports a pruned branch of an If of the rewritten graph: a line, and the assumption if data
    decide the If."""
    report.pruned.append(line)
    (condition,) = node.inputs[:1]
    outer: dict[Value, Value] = {}
    while rewriter.outer is not None and rewriter.holder is not None and rewriter.body is not None:
        outer |= _entered(rewriter.holder, rewriter.body)
        rewriter = rewriter.outer
    if condition is None or not _is_decided_by_data(condition, rewriter.graph, outer):
        return
    text = expression(condition, lambda value: value.name, outer)
    if gone == 0:
        text = f"not ({text})" if " " in text else f"not {text}"
    report.assumed[line] = text


def require_nothing_assumed(report: Report) -> None:
    """Raises UsageError with the assumptions about data, and with the option that states them."""
    if not report.assumed:
        return
    lines = ["a branch that data could take would be pruned; `strict` refuses that:"]
    for line, text in report.assumed.items():
        equal = _EQUAL.fullmatch(text)
        option = keyword("values", {equal[1]: json.loads(equal[2])}) if equal else "`values`"
        lines += [
            f"  {line}",
            f"    only {text} would be left; say so ({option}), or leave shapes open",
        ]
    raise UsageError(*lines)


def _entered(node: Node, body: Body) -> dict[Value, Value]:
    """The value outside that each input of a body is, or begins with."""
    pairs = ((value, node.outer(port)) for value, port in body.entries())
    return {value: outer for value, outer in pairs if outer is not None}


def _is_decided_by_data(condition: Value, graph: Graph, outer: dict[Value, Value]) -> bool:
    """Whether the elements of an input of the model, rather than shapes, decide a condition.
    `outer` maps the inputs of the bodies around it to outer values."""
    todo, seen, outer = [condition], set[Value](), dict(outer)
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
        if node is not None and node.op != "Constant" and not has_trait(node.op, "reads_shape"):
            todo += node.operands
            for body in node.bodies:
                outer |= _entered(node, body)
                todo += body.graph.outputs
    return False
