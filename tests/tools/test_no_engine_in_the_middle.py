"""Rules, readers and writers follow the two specifications.

They may name an engine to explain a file, or a meaning that the specification leaves open ("as in
onnxruntime"). Abilities and faults of engines decide nothing there: they are for quirks and
targets.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import bridge

ROOT = Path(bridge.__file__).parent
MIDDLE = [
    path
    for folder in ("neutral", "operators", "onnx_format", "ir_format")
    for path in sorted((ROOT / folder).rglob("*.py"))
]

ENGINE = r"(?:OpenVINO|[Oo]nnxruntime)"
DECIDES = re.compile(
    rf"\bplugin|\b[CGN]PU\b|\b20\d\d\.\d|{ENGINE}'s kernels?|"
    rf"{ENGINE}(?:'s [A-Za-z]+)?(?: \([\d.]+\))?"
    r" (?:and \w+ )?(?:takes?|wants?|asks|lacks?|has no|have no|has |knows|drops?|does not|moves|"
    r"could|would|cannot|runs|fails|refuses|divides|leaves|reduces|implements|sorts by)\b"
)


def spoken(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a file, each in one line, with where it begins."""
    text = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, " ".join(str(node.value.value).split())


def test_no_engine_decides() -> None:
    assert not [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in MIDDLE
        for line, text in spoken(path)
        if DECIDES.search(text)
    ]
