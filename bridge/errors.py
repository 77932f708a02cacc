"""What Bridge raises. Every message says what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_LINE = 500
"""Characters of a message's line; a name in a model can have millions."""

MOST_LINES = 200
"""Lines of a message."""


def readable(text: str) -> str:
    """`text` with long lines cut in the middle, and without the lines after MOST_LINES."""
    lines = [_cut(line) for line in text[: LONGEST_LINE * MOST_LINES * 10].split("\n")]
    if len(lines) > MOST_LINES:
        rest = len(lines) - MOST_LINES
        lines[MOST_LINES:] = [f"... and {rest} more {'line' if rest == 1 else 'lines'}"]
    return "\n".join(lines)


def _cut(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    head = LONGEST_LINE * 3 // 5
    return f"{line[:head]} ... {line[head - LONGEST_LINE :]}"


class BridgeError(Exception):
    """Base of everything Bridge raises on purpose."""

    def __init__(self, message: object = "") -> None:
        super().__init__(readable(str(message)))


class InvalidModelError(BridgeError):
    """The input is not a model, or a model that contradicts itself."""


class LimitError(BridgeError):
    """The model would cost more than the limits allow (`bridge/limits.py`)."""


class UsageError(BridgeError):
    """The call asks for something that makes no sense: a bad option, an unknown file type."""


@dataclass(frozen=True)
class Unsupported:
    """One node that cannot be written: its operator, where it stands, and why not."""

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
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[UnsupportedError], tuple[str, tuple[Unsupported, ...]]]:
        # By default an exception is unpickled from its message, which pools of processes rely on.
        return type(self), (self.target, self.findings)
