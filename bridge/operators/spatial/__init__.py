"""Resizing, sampling and blocks on the spatial axes of images."""
