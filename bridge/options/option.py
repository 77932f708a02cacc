"""The declaration of a library option; `bridge.options` declares them all."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """The facts about an option beside its type.

    `help` is for everybody. `given` adds how to give it in Python, `written` how to write it on the
    command line. `brief` is the line of the command's help, if `help` is longer. `panel` is its
    group there. `flags` are its names there, if they are not the keyword with dashes. `takes` is
    the type of the command line's argument: bool is a switch, a list of texts may be repeated, None
    is for Python alone. `form` is the argument's form. `least` is the smallest number, `choices`
    are the allowed words. `check` raises UsageError for a wrong value.
    """

    panel: str
    help: str
    given: str = ""
    written: str = ""
    brief: str = ""
    takes: Any = bool
    form: str = ""
    flags: tuple[str, ...] = ()
    default: Any = None
    least: int | float | None = None
    choices: tuple[str, ...] = ()
    check: Callable[[Any], object] | None = None

    @property
    def line(self) -> str:
        """The line of a command's help."""
        return self.brief or self.help

    @property
    def text(self) -> str:
        """All that a page says of the option on the command line."""
        return f"{self.help} {self.written}".rstrip().replace("`", "")


INPUTS = "Inputs, outputs and shapes"
IFS = "Ifs"
IR = "IR, and whom it is for"
STATE = "IR with a state"
ONNX = "ONNX"
CHECK = "Check"
FILES = "Files"
MANY = "Many models"
OUTPUT = "What is printed"

PANELS = (INPUTS, IFS, IR, STATE, ONNX, CHECK, FILES, MANY, OUTPUT)
"""The groups of options, in the order of the help."""


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
