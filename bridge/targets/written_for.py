"""The record of the oldest release of OpenVINO that an IR was written for.

Workarounds for the faults of older releases are not in the file, so that a check on an older one
says so.
"""

from bridge.neutral.graph import Model
from bridge.options import release_number
from bridge.passes.context import Context
from bridge.records.entry import Entry
from bridge.targets import READ_SINCE

WRITTEN_FOR: Entry[str] = Entry("bridge.openvino", str, "release of OpenVINO", hint=True)
"""The metadata entry for the release."""

NEWEST = max(READ_SINCE.values(), key=release_number)
"""The newest release whose faults are known."""


def record_release(model: Model, context: Context) -> bool:
    """Records the release whose faults the workarounds in an IR are for. No pass looks at it."""
    WRITTEN_FOR.write(model.metadata, context.options.get("openvino") or NEWEST)
    return False


def forget_release(model: Model, context: Context) -> bool:
    """Removes the record: ONNX has no such release."""
    model.metadata.pop(WRITTEN_FOR.key, None)
    return False
