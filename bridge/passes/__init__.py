"""Passes from neutral graph to neutral graph, one file each.

`bridge/pipeline.py` says which of them run, in what order.
"""
