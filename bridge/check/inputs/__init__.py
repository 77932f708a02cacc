"""Inputs of a check: own ones, drawn ones, and ones that are sought for branches and Loops.

A `Recipe` says what an input is made from, a `Case` is an input that the model takes. `search`
gives the `Inputs` of a check.
"""

from bridge.check.inputs.draw import Maker, make_inputs
from bridge.check.inputs.recipe import OWN_NAMES, Case, Recipe, is_empty, is_extreme
from bridge.check.inputs.sizes import free_dimensions, keys_of, open_sizes

__all__ = [
    "OWN_NAMES",
    "Case",
    "Maker",
    "Recipe",
    "free_dimensions",
    "is_empty",
    "is_extreme",
    "keys_of",
    "make_inputs",
    "open_sizes",
]
