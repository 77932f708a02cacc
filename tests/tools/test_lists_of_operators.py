"""A pass has no list of operators' names: what it must know of an operator is a trait of its row.

A list that is the subject of its file itself stands here, with the reason.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import bridge
from bridge.vocabulary import operators

ROOT = Path(bridge.__file__).parent

MOST = 2
"""As many names may stand together: an operator, and its kin of the other format."""

SUBJECTS = {
    "neutral/cost.py": "operators with one formula for their multiplications",
    "passes/fake_quantize.py": "what a FakeQuantize is made of, and turns into",
    "passes/fuse/float_weights.py": "what may stand between weights and their integers",
    "passes/sequences/joined.py": "the operators that build a sequence, which it replaces",
    "passes/state/exchange.py": "the operators that the pass replaces",
    "passes/strings/vocabularies.py": "operators with one transfer function",
    "targets/__init__.py": "operators that a release of OpenVINO lacks",
    "targets/gpu.py": "operators that the GPU plugin runs with many axes",
    "targets/limits.py": "operators that OpenVINO runs on strings, and its iterators",
}
"""Files whose lists of operators are their subject, and what these say."""


def names_together(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The collections of more names of operators than may stand together, with their lines."""
    known = operators()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            texts = [item.value for item in node.elts if isinstance(item, ast.Constant)]
            names = [text for text in texts if isinstance(text, str) and text in known]
            if len(names) > MOST:
                yield node.lineno, names


def test_a_pass_asks_for_traits() -> None:
    found = {}
    for layer in ("neutral", "passes", "targets"):
        for path in sorted((ROOT / layer).rglob("*.py")):
            lists = list(names_together(path))
            if lists:
                found[path.relative_to(ROOT).as_posix()] = lists
    assert {file: lists for file, lists in found.items() if file not in SUBJECTS} == {}
    assert SUBJECTS.keys() - found.keys() == set(), "these have no list any more"
