"""What an option of the library is declared with: `bridge.options` declares them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """What is said of an option beside its type.

    `help` is for everybody. `given` adds how it is given in Python, `written` how it is written on
    the command line. `panel` is its group there; `flags` are its names there, if they are not the
    keyword's with dashes. `takes` is the type of the command line's argument: bool is a switch, a
    list of texts may be repeated, None is for Python alone. `form` is the argument's form.
    `least` is the smallest number, `choices` are the words that it may be. `check` raises
    UsageError for a value that makes no sense.
    """

    panel: str
    help: str
    given: str = ""
    written: str = ""
    takes: Any = bool
    form: str = ""
    flags: tuple[str, ...] = ()
    default: Any = None
    least: int | float | None = None
    choices: tuple[str, ...] = ()
    check: Callable[[Any], object] | None = None


INPUTS = "Inputs, outputs and shapes"
IFS = "Ifs"
IR = "Writing IR"
STATE = "Writing IR with a state"
ONNX = "Writing ONNX"
CHECK = "Checking"
FILES = "Files and errors"
MANY = "Many models"
OUTPUT = "What is printed"

PANELS = (INPUTS, IFS, CHECK, IR, STATE, ONNX, FILES, MANY, OUTPUT)
"""The groups of options, in the order in which they are shown."""


def declared(options: type) -> Iterator[tuple[str, Option]]:
    """The options of a class with their names, panel by panel."""
    found = {name: each.__metadata__[0] for name, each in options.__annotations__.items()}
    yield from sorted(found.items(), key=lambda item: PANELS.index(item[1].panel))


def described(options: type) -> str:
    """The options of a class as a list for a docstring, panel by panel."""
    from textwrap import wrap

    lines: list[str] = []
    panel = None
    for name, option in declared(options):
        if option.panel != panel:
            panel = option.panel
            lines += ["", f"{panel}:", ""]
        text = f"- `{name}`: {option.help} {option.given}".rstrip()
        lines += wrap(text, 96, subsequent_indent="  ")
    return "\n".join(lines).strip()


def names_of(options: type) -> dict[str, str]:
    """The types of options, as they are written, by name."""
    return {
        name: annotation.__origin__.__forward_arg__
        for name, annotation in options.__annotations__.items()
    }
