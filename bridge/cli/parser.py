"""How a command reads its arguments: argparse, which starts at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import Any, NoReturn

from bridge.cli.output import echo
from bridge.errors import UsageError
from bridge.suggestions import nearest


class Parser(argparse.ArgumentParser):
    """The arguments of a command, or of `bridge` itself.

    `about` is what the help says first: paragraphs, of which those with indented lines stay as
    they are. Options are not abbreviated: what is short for one option now may mean two later.
    """

    def __init__(self, name: str, usage: str, about: str) -> None:
        super().__init__(
            prog=name,
            usage=f"{name} {usage}",
            description=cleandoc(about),
            formatter_class=_Help,
            allow_abbrev=False,
            add_help=False,
        )
        self.add_argument("-h", "--help", action=_ShowHelp, help="Show this message and exit.")

    def read(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Values by name. Options may stand anywhere. Raises UsageError."""
        given, further = self.parse_known_intermixed_args(list(arguments))
        if further:
            meant = nearest(further[0].partition("=")[0], self._option_string_actions)
            hint = f"; did you mean {meant}?" if meant is not None else ""
            self.error(f"unrecognized arguments: {' '.join(further)}{hint}")
        return vars(given)

    def error(self, message: str) -> NoReturn:
        """Raises UsageError with the message of argparse."""
        raise UsageError(f"{message}\nusage: {self.usage}\n'{self.prog} --help' says more")


class _Help(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        paragraphs = text.split("\n\n")
        return "\n\n".join(p if "\n  " in p else fill(p, width, indent) for p in paragraphs)


class _ShowHelp(argparse.Action):
    """Prints so that an output which nobody reads is noticed: argparse passes over it."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, 0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        echo(parser.format_help().rstrip("\n"))
        parser.exit()


def at_least(least: int) -> Callable[[str], int]:
    """Reads an integer that is no less."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no integer from {least} on")
        return number

    return read
