"""`python -m tests.homes` writes which file of `bridge/operators/` has rules for what into
`bridge/operators/homes.txt`; with `--show` it prints that."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from bridge import operators
from bridge.neutral import inference


def homes() -> str:
    """The table, of what the files register. None of them may have been imported before."""
    found: dict[str, set[str]] = defaultdict(set)

    def noting(register: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*names: str, **options: Any) -> Any:
            home = sys._getframe(1).f_globals["__name__"].removeprefix("bridge.operators.")
            for name in names:
                found[name].add(home)
            return register(*names, **options)

        return noted

    for module, registers in ((operators, ("expands", "reads")), (inference, ("infers", "knows"))):
        for name in registers:
            setattr(module, name, noting(getattr(module, name)))
    operators.load_all()
    return "".join(f"{name} {' '.join(sorted(files))}\n" for name, files in sorted(found.items()))


if __name__ == "__main__":
    if "--show" in sys.argv:
        print(homes(), end="")
    else:
        operators.HOMES.write_text(homes(), encoding="utf-8")
