"""ONNX: reading a model into the neutral graph and writing one."""
