"""The library: conversions, models in memory, and what inputs and outputs stand for."""
