"""Always empty inputs, with a size that may be 1 too.

OpenVINO's GPU plugin gives an input whose size is 0 one element, and then refuses the empty tensor.
"""

from bridge.neutral.graph import Model
from bridge.neutral.types import Interval, with_dims
from bridge.passes.context import Context

MAYBE = Interval(0, 1)


def open_empty_inputs(model: Model, context: Context) -> None:
    """Opens, in place, the sizes of 0 of all inputs."""
    for value in model.graph.inputs:
        if value.shape is not None and 0 in value.shape:
            value.type = with_dims(value.type, lambda dim: MAYBE if dim == 0 else dim)
            value.declared = value.type
