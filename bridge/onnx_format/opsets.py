"""The operator sets that a model or function imports."""

from collections.abc import Iterable

import onnx
import onnx.defs

from bridge.errors import InvalidModelError

IMPLIED = {"com.microsoft": 1}
"""Operator sets that need no import: onnxruntime's own operators have one, and it asks for none."""


_MOST = (1 << 31) - 1
"""The newest operator set of other domains that onnx can count."""


def canonical(domain: str) -> str:
    """The domain; "" for the default one, which has two names."""
    return "" if domain == "ai.onnx" else domain


def read_opsets(imports: Iterable[onnx.OperatorSetIdProto], where: str) -> dict[str, int]:
    """The version of each imported domain; InvalidModelError for one that cannot be."""
    newest = onnx.defs.onnx_opset_version()
    versions: dict[str, int] = {}
    for entry in imports:
        domain, version = canonical(entry.domain), entry.version
        if version < 1 or version > (_MOST if domain else newest):
            raise InvalidModelError(
                f"{where}: imports operator set {version} of {domain or 'ONNX'}; "
                + (f"there are 1 to {_MOST}" if domain else f"the installed onnx has 1 to {newest}")
            )
        if versions.setdefault(domain, version) != version:
            raise InvalidModelError(
                f"{where}: imports the operator sets {versions[domain]} and {version} of "
                f"{domain or 'ONNX'}"
            )
    return versions
