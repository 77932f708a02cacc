"""Whole models: drawn at random, from exporters, from the standard, and `roundtrip_models/`."""
