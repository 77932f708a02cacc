"""The base line of start-up: a script that imports the packages of a conversion and does not use
them.

It has the commands and the options of `bridge`; the commands do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridge.cli.app import COMMANDS, command_line

_HEAD = """\
from typing import Annotated
import lxml.etree, onnx, typer
app = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
"""


def write(path: Path) -> None:
    """Writes the script."""
    parts = [_HEAD, *(_command(name) for name in COMMANDS), "app()\n"]
    path.write_text("".join(parts), encoding="utf-8")


def _command(name: str) -> str:
    """A command of Bridge's without its work."""
    command = command_line().commands[name]
    parameters = ", ".join(_parameters(command))
    about = f"    {command.help!r}\n"
    return f"@app.command({name!r})\ndef _{name}(*, {parameters}):\n{about}"


def _parameters(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.name == "help":
            continue
        is_option = parameter.param_type_name == "option"
        what = f"typer.Option(*{parameter.opts!r}, " if is_option else "typer.Argument("
        kind = "bool" if getattr(parameter, "is_flag", False) else "str"
        kind = f"list[{kind}]" if getattr(parameter, "multiple", False) else kind
        default = "False" if kind == "bool" else "None"
        about = f"{what}help={parameter.help!r})"
        yield f"{parameter.name}: Annotated[{kind} | None, {about}] = {default}"
