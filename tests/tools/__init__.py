"""What other tools make of ONNX models, and what Bridge does with that; see `__main__`."""
