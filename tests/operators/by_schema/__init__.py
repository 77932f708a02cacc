"""The operators' suite: every operator by its schema, with axes that are data.

`python -m tests.operators` runs it. A row of `onnx_rows.py` says of an operator what its schema
does not: shapes that fit, and the values of attributes.
"""
