"""State between calls: a variable of IR, and the pair of an input and an output of ONNX.

`exchange.py` replaces the one by the other. `variables.py` does so for the variables of an IR, and
`pairs.py` for the pairs of an ONNX model that a user asks for. `first_call.py` removes the input
of a merged decoder that says whether there are states. `records.py` has the metadata's entries
for the way back.
"""
