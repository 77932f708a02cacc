"""A model with the branches that an input takes in the place of its Ifs, for what is looked at
outside of bodies alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridge.check.outputs import Results
from bridge.check.taps import expose, seen, spot_of
from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.rewrite import Pattern, Result, Rewriter

_NOTHING = Pattern(lambda b, node, rewriter: None, frozenset())


def watched(model: Model) -> Model:
    """A copy that shows the conditions of its outermost Ifs."""
    copy = clone_model(model)
    expose(copy, (), [spot_of(copy.graph, value) for value in _conditions(copy)])
    return copy


def take_branches(model: Model, results: Results) -> Model:
    """A copy with the branches that were taken in the place of its outermost Ifs, by what the
    `watched` model gave."""
    copy = clone_model(model)
    taken: dict[Value | None, Any] = {
        value: results[seen(index)] for index, value in enumerate(_conditions(copy))
    }

    def inlined(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        body = node.then_body if np.all(taken[node.inputs[0]]) else node.else_body
        return rewriter.inline(b, node, body, _NOTHING)

    Rewriter(copy.graph).run(Pattern(inlined, frozenset({"If"}), bodies=False))
    return copy


def _conditions(model: Model) -> list[Value]:
    """Those of the outermost Ifs, each once."""
    given = (node.inputs[0] for node in model.graph.nodes if node.op == "If")
    return list(dict.fromkeys(value for value in given if value is not None))
