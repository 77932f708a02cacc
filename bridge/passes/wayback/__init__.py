"""The way back from an IR to the ONNX model that it was made of.

A file may hold records: the ONNX node from which layers were made, the node that a quirk replaced.
A record is a hint. It counts only if converting the recorded node once more gives the present
layers (`replay.py`).
"""
