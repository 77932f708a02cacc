"""Which releases of onnx, onnxruntime and OpenVINO a conversion is right in; see `__main__`."""
