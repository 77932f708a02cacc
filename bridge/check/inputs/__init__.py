"""Inputs of a check: own ones, drawn ones, and ones that are sought for branches and Loops.

A `Recipe` says what an input is made from, a `Case` is an input that the model takes. `search`
gives the `Inputs` of a check.
"""

from bridge.check.inputs.draw import Maker, make_inputs
from bridge.check.inputs.recipe import Recipe, is_empty
from bridge.check.inputs.sizes import free_dimensions

__all__ = ["Maker", "Recipe", "free_dimensions", "is_empty", "make_inputs"]
