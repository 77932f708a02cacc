"""State between calls: a variable of IR, and the pair of an input and an output of ONNX.

`exchange.py` puts the one in the place of the other. `variables.py` does so for the variables of an
IR, `pairs.py` for the pairs of an ONNX model that a user asks for, `first_call.py` for the input
of a merged decoder that says whether there are states. `records.py` says what the metadata keeps
for the way back.
"""
