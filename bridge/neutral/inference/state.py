"""Inference: IR's variables."""
