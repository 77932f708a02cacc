"""Inference: misc."""
