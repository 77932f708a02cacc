"""Faults of OpenVINO's GPU plugin, seen on an emulated device (`tests/gpu/`)."""
