"""Which release of Bridge this is."""

from __future__ import annotations


def release() -> str:
    """The version that is installed; "" in a tree that is not."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("onnx-openvino-bridge")
    except PackageNotFoundError:
        return ""
