"""Passes from neutral graph to neutral graph, one file each.

`bridge/pipeline.py` lists the passes of a conversion in their order.
"""
