"""Faults of OpenVINO's CPU plugin."""
