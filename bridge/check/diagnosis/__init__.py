"""Explains a difference between a model and a version of it.

`first_difference` finds the first value that differs, `neighbours` shows what is around it, `blame`
says who is at fault, as far as runs show it, `reduce` cuts out the smallest part that still
differs, and `force` runs branches that no input takes.

All take plain values: models, functions that open changed models, inputs, and a function that
compares. Sessions take inputs and give outputs under the names of the original.
"""
