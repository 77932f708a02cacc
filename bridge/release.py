"""Which release of Bridge this is."""


def release() -> str:
    """The installed version; "" if Bridge runs from a source tree without installation."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("onnx-openvino-bridge")
    except PackageNotFoundError:
        return ""
