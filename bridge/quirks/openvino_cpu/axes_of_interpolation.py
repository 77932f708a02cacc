"""Interpolations along axes for which the CPU plugin has no kernel."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.operators.spatial.resize import resize_by_axes
from bridge.quirks.quirk import Place, Quirk, rewriting

MODES = {"linear_onnx": "linear"}
"""Modes of Interpolate that have another name in Resize."""


def axis_by_axis(b: Builder, node: Node, place: Place) -> Result:
    """The interpolation with explicit weights, axis by axis, as for a Resize."""
    x, wanted, axes = (node.input(i) for i in range(3))
    attributes = node.attributes
    assert x is not None and wanted is not None
    by_scales = attributes["shape_calculation_mode"] == "scales"
    if x.shape is None or _has_kernel(
        x, wanted, known_of(axes).ints, attributes["mode"], by_scales
    ):
        return None
    scales, sizes = (wanted, None) if by_scales else (None, wanted)
    inputs = [x, None, scales, sizes]
    mode = attributes["mode"]
    names = ("coordinate_transformation_mode", "nearest_mode")
    resize = Builder([]).node("Resize", inputs, 1, {
        "mode": MODES.get(mode, mode), "axes": known_of(axes).ints,
        "cubic_coeff_a": attributes["cube_coeff"], **{name: attributes[name] for name in names},
    })  # fmt: skip
    return resize_by_axes(b, resize, scales, sizes)


def _has_kernel(
    x: Value, wanted: Value, axes: tuple[int, ...] | None, mode: str, by_scales: bool
) -> bool:
    """Whether the plugin has a kernel for these axes.

    It has one for all axes up to rank 3, and for the axes behind the channels up to rank 5. It also
    has one for the axes of an image with channels last.
    """
    assert x.shape is not None
    rank = len(x.shape)
    if rank <= 3:
        return True
    if rank > 5:
        return False
    places = [axis % rank for axis in axes or range(rank)]
    if by_scales:
        known = known_of(wanted).array
        kept = [known is None or scale == 1 for scale in (places if known is None else known)]
    else:
        sizes = known_of(wanted).parts or (None,) * len(places)
        kept = [s is None or s == x.shape[a] for a, s in zip(places, sizes, strict=True)]
    resized = {axis for axis, same in zip(places, kept, strict=True) if not same}
    return not resized & {0, 1} or (rank == 4 and mode != "cubic" and resized <= {1, 2})


QUIRK = Quirk(
    releases="2026.4",
    symptom="An Interpolate along the first axes of a tensor of rank 4 or more fails or is wrong: "
    "only supports resize on spatial dimensions.",
    fires="At an Interpolate along axes, or of a rank, for which the plugin has no kernel.",
    safe="Each axis is interpolated alone, with explicit weights of the same mode.",
    cost="a product with a matrix, or a Gather, for each axis",
    run=rewriting("Interpolate", by=axis_by_axis),
)
