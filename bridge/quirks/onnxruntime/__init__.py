"""Faults of onnxruntime's CPU kernels."""
