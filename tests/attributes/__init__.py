"""Single operators, enumerated over their attributes: ONNX first, and IR first."""
