"""The outcome of a case on a route."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case on a route.

    `kind` is one of `right`, `refused` (Bridge says that it cannot convert the model), `wrong` (a
    result differs), `engine` (an engine cannot read or run the file that Bridge wrote), `error` (an
    exception that Bridge should not raise), `crash`, `timeout`, or `absent` (the route has no model
    to start from). `detail` says why, in one line, or which engine was right.
    """

    kind: str
    detail: str = ""

    @property
    def reason(self) -> str:
        """The ledger's wording: the kind, and the detail without measured numbers."""
        return f"{self.kind}: {re.sub(r' [(]abs .*', '', self.detail)}"
