"""The base line of start-up: the packages that a conversion stands on, and nothing done with them.

A script with the commands and the options of `bridge`, taken from their source, whose commands do
nothing.
"""

from __future__ import annotations

import ast
from pathlib import Path

import bridge.cli
from bridge.cli.app import COMMANDS
from bridge.limits import MEANINGS
from bridge.options import DEVICES, IFS

_FOLDER = Path(bridge.cli.__file__).parent
_FILES = ("options", "many", "convert", "check", "inspect", "ops", "app")

_HEAD = f"""
from __future__ import annotations
import sys
from pathlib import Path
from typing import Annotated
import lxml.etree, onnx, typer
MEANINGS, IFS, DEVICES = {tuple(MEANINGS)}, {IFS}, {DEVICES}
"""

_TAIL = f"""
app = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
app.callback()(bridge)
for name, help in {COMMANDS}.items():
    app.command(short_help=help)(globals()[name])
app()
"""


def write(path: Path) -> None:
    """Writes the script."""
    statements = [s for name in _FILES for s in _kept(_FOLDER / f"{name}.py")]
    path.write_text(f"{_HEAD}{ast.unparse(ast.Module(statements, []))}{_TAIL}", encoding="utf-8")


def _kept(file: Path) -> list[ast.stmt]:
    """What a file declares to Typer: options, and commands without what they do."""
    kept: list[ast.stmt] = []
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef):
            if "typer." not in ast.unparse(statement) or statement.name == "command_line":
                continue
            about = [ast.Expr(ast.Constant(ast.get_docstring(statement)))]
            statement.body = [*about, ast.Pass()]
        elif isinstance(statement, ast.Assign):
            text = ast.unparse(statement)
            if "typer." not in text and not text.startswith(("_ONNX", "(_ONNX")):
                continue
        else:
            continue
        kept.append(statement)
    return kept
