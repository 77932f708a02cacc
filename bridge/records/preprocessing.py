"""The record of preprocessing in a model's metadata: the steps from the inputs of the model to the
inputs of its original.

With this record a check feeds the original the preprocessed inputs.
"""

from dataclasses import dataclass, field

from bridge.records.entry import Entry


@dataclass
class Preprocessing:
    """The preprocessing of an input, by its name. The input is first put into the `model`'s layout
    if it has another one, `tensor`. `mean` is subtracted, and the rest divided by `scale`: one
    number, or one for each channel. Empty for a step that is left out. Before both, the input of
    another `element` type is converted, and its channels are put in `reverse` order."""

    input: str
    mean: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    model: str = ""
    tensor: str = ""
    element: str = ""
    reverse: bool = False


PREPROCESSING = ("reverse_channels", "mean", "scale", "layout")
"""The options for it, beside the types of inputs."""

PREPROCESSED: Entry[list[Preprocessing]] = Entry(
    "bridge.preprocessed", list[Preprocessing], "preprocessing"
)
"""The metadata entry for the preprocessing of a model, the first applied first."""
