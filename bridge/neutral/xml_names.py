"""Names that XML can hold."""

import re

_FORBIDDEN = "[\0-\b\v\f\x0e-\x1f\ud800-\udfff\ufffe\uffff]"


def clean(name: str) -> str:
    """A name without the characters that XML cannot hold."""
    return name if name.isprintable() else re.sub(_FORBIDDEN, "\ufffd", name)
