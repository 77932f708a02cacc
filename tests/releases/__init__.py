"""The releases of onnx, onnxruntime and OpenVINO for which a conversion is right; see
`__main__`."""
