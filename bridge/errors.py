"""Bridge's exceptions. Every message says what is wrong, where it is, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_LINE = 500
"""Characters of a message's line; a name in a model can have millions."""

MOST_LINES = 200
"""Lines of a message."""

_COMMAND = re.compile(r"^ *:(?=:)|#(?=#\[)")
"""Texts that GitHub treats as commands: `::` at the start of a line, `##[` anywhere in it."""


def printable(line: str) -> str:
    """One line as text that can be shown anywhere; names of models and files hold any character.

    Escapes each character that is not printed: ends of lines, escapes of terminals, C1,
    bidirectional overrides, separators. Escapes GitHub's commands too (`::error::`)."""
    if not line.isprintable():
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return _COMMAND.sub(lambda found: f"{found[0][:-1]}\\x{ord(found[0][-1]):x}", line)


def text_of(lines: Iterable[object]) -> str:
    """Joins lines to text. An end of a line within one of `lines` is escaped."""
    return "\n".join(printable(str(line)) for line in lines)


def readable(lines: Sequence[str]) -> list[str]:
    """Printable `lines`, long ones cut in the middle. After MOST_LINES, a line counts the rest."""
    rest = len(lines) - MOST_LINES
    shown = lines if rest < 2 else [*lines[:MOST_LINES], f"... and {rest} more lines"]
    return [_cut(printable(_cut(line))) for line in shown]


def _cut(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    head, between = LONGEST_LINE * 3 // 5, " ... "
    return f"{line[:head]}{between}{line[head + len(between) - LONGEST_LINE :]}"


def amount(count: int, noun: str, several: str = "") -> str:
    """A count with its noun: "1 model", "2 models"; `several` is another plural than with s."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


class Refused(Exception):
    """Raised by a rule for a node that the target cannot express: the reason and a remedy."""


class BridgeError(Exception):
    """Base of everything Bridge raises on purpose: a message of one line or several."""

    known: dict[str, Any] | None = None
    """Facts that a command with `--json` prints beside the error."""

    def __init__(self, *lines: object) -> None:
        super().__init__(*readable([str(line) for line in lines]))

    def __str__(self) -> str:
        return "\n".join(self.args)


class InvalidModelError(BridgeError):
    """The input is not a model, or a model that contradicts itself."""


class LimitError(BridgeError):
    """The model would cost more than the limits allow (`bridge/limits.py`)."""


class UsageError(BridgeError):
    """The call asks for something that makes no sense: a bad option, an unknown file type."""


class UnknownOptionError(UsageError, TypeError):
    """A function has no such option."""


@dataclass(frozen=True)
class Unsupported:
    """One node that cannot be written: its operator, its path, and the reason."""

    operator: str
    where: str
    why: str


class UnsupportedError(BridgeError):
    """The model holds operators that the target cannot express; lists all of them at once."""

    def __init__(self, target: str, findings: Iterable[Unsupported]) -> None:
        self.target = target
        self.findings = tuple(findings)
        by_operator: dict[tuple[str, str], list[str]] = {}
        for finding in self.findings:
            by_operator.setdefault((finding.operator, finding.why), []).append(finding.where)
        lines = [f"the model cannot be written as {target}:"]
        for (operator, why), places in sorted(by_operator.items()):
            lines.append(f"  {operator} (x{len(places)}): {why}")
            lines.append(f"    first at {places[0]}")
        super().__init__(*lines)

    def __reduce__(self) -> tuple[type[UnsupportedError], tuple[str, tuple[Unsupported, ...]]]:
        # By default an exception is unpickled from its message, which pools of processes rely on.
        return type(self), (self.target, self.findings)


def shortened(message: str, limit: int = 200) -> str:
    """A message on one line."""
    text = " ".join(message.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
