"""Inference: sequences."""
