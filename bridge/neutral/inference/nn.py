"""Inference: nn."""
