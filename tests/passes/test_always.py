"""A condition that always holds is known where a trip count ends the Loop."""

from __future__ import annotations

import pytest

from bridge.neutral.ports import Condition
from bridge.passes.always import know_conditions
from tests.support.graphs import after, read

LOOP = """g (float[2] x, int64 n) => (float[2] y) {{
  y = Loop ({trips}, "", x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {{
    limit = Constant <value = int64 {{{limit}}}> () d = {test} t = Neg (s) }}> }}"""
HOLDS = "GreaterOrEqual (i, limit)"
CASES = {
    "always": (LOOP.format(trips="n", limit=0, test=HOLDS), True),
    "from the second on": (LOOP.format(trips="n", limit=1, test=HOLDS), False),
    "of the limit": (LOOP.format(trips="n", limit=0, test="GreaterOrEqual (limit, i)"), False),
    "without end": (LOOP.format(trips='""', limit=0, test=HOLDS), False),
}


@pytest.mark.parametrize("name", CASES)
def test_conditions(name: str) -> None:
    text, known = CASES[name]
    model = read(text)
    after(know_conditions, model, "onnx")
    (loop,) = (node for node in model.graph.nodes if node.op == "Loop")
    (held,) = (v.constant for v, exit in loop.body.exits() if isinstance(exit, Condition))
    assert (held is not None and bool(held.array())) == known
