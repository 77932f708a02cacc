"""Inference: ai.onnx.ml."""
