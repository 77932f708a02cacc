"""Single operators with all combinations of their attributes: ONNX first, and IR first."""
