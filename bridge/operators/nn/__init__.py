"""Convolutions, poolings and normalisations."""
