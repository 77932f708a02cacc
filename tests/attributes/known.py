"""Rows of a family that are not right for a reason outside Bridge, and the reason."""

from __future__ import annotations

from dataclasses import dataclass

from tests.attributes.family import Case


@dataclass(frozen=True)
class Known:
    """Cases of a family with these levels of axes that are not right, and the reason."""

    family: str
    levels: dict[str, tuple[str, ...]]
    reason: str

    def covers(self, case: Case) -> bool:
        """Whether a case has these levels."""
        return case.family == self.family and all(
            case.row[axis] in levels for axis, levels in self.levels.items()
        )


SAME = ("SAME_UPPER", "SAME_LOWER")
OPEN = {"shapes": ("open",)}
KNOWN = (
    Known("onnx pools", {"pads": SAME, "dilation": ("2",)},
          "OpenVINO leaves dilations out of the pads that it computes"),
    Known("onnx resizes", {"coordinates": ("tf_crop_and_resize",), "by": ("scales",)},
          "onnxruntime scales the whole input, the standard the region"),
    Known("onnx resizes", {"coordinates": ("tf_crop_and_resize",), "option": ("antialias",)},
          "onnxruntime and OpenVINO differ; the standard's text leaves it open"),
    Known("onnx resizes", {"coordinates": ("tf_crop_and_resize",), "by": ("sizes",),
                           "scale": ("(2.3, 1)",)},
          "onnxruntime leaves an axis of scale 1 whole"),
    Known("onnx transposed_convolutions", {"pads": SAME, "stride": ("3",), "kernel": ("2",)},
          "onnxruntime gives less than stride times the input where no filter reaches so far"),
    Known("onnx resizes", {"coordinates": ("half_pixel", "pytorch_half_pixel"),
                           "mode": ("nearest",), "rounding": ("floor", "ceil"),
                           "scale": ("(2.3, 1)",), "by": ("sizes",), **OPEN},
          "the middle of an axis is a tie, which rounding to 32 bits decides"),
    Known("onnx resizes", {"coordinates": ("half_pixel_symmetric",), "mode": ("nearest",)},
          "the middle of an axis is a tie, which rounding to 32 bits decides"),
    Known("onnx regions", {"mode": ("max",), "ratio": ("0",)},
          "the number of samples depends on the regions"),
    Known("onnx reductions", {"size": ("0",), **OPEN},
          "OpenVINO starts from the largest number over what turns out to be nothing"),
    Known("onnx reductions", {"size": ("0",), "constants": ("",)},
          "OpenVINO does not run reductions of nothing along computed axes"),
    Known("onnx reductions", {"op": ("L2",), "type": ("i4", "i8"), "constants": ("",)},
          "OpenVINO does not compile ReduceL2 of integers along computed axes"),
    Known("onnx reductions", {"axes": ("()",), "constants": ("",), **OPEN},
          "OpenVINO does not run with axes of no element that are computed"),
    Known("ir reductions", {"op": ("Sum", "Prod", "L1", "L2"), "type": ("u1",)},
          "OpenVINO cuts off sums and products of bytes at 255"),
    Known("ir arithmetic", {"op": ("Divide", "Subtract", "SquaredDifference", "Power"),
                            "type": ("u1",)},
          "OpenVINO computes bytes as floats, which it rounds and cuts off"),
    Known("ir gathers", {"outside": ("1",)},
          "IR gives 0 for places outside, where onnxruntime fails"),
    Known("ir pools", {"pads": ("same_upper", "same_lower"), **OPEN},
          "ONNX has one way of dilated and of unused pads, which onnxruntime refuses"),
    Known("ir pools", {"rounding": ("ceil",)},
          "refused: a window may start in the padding, which ONNX has not"),
    Known("ir convolutions", {"shaped": ("1",), "output_padding": ("1",)},
          "ONNX has no output padding beside an output shape, and none of a whole stride"),
    Known("ir convolutions", {"output_padding": ("1",), "stride": ("1",)},
          "onnxruntime takes no output padding of a whole stride"),
    Known("ir interpolations", {"coordinates": ("tf_half_pixel_for_nn",), "mode": ("nearest",)},
          "ties, which rounding to 32 bits decides"),
    Known("ir interpolations", {"coordinates": ("half_pixel", "pytorch_half_pixel"),
                                "mode": ("nearest",), "rounding": ("simple",),
                                "by": ("sizes",), **OPEN},
          "ties, which rounding to 32 bits decides"),
    Known("ir recurrent", {"lengths": ("(3, 1)", "(1, 3)"), **OPEN},
          "OpenVINO leaves out the lengths where sizes are open"),
)  # fmt: skip


def reason_of(case: Case) -> str | None:
    """Why a case need not be right; None if it must be."""
    return next((known.reason for known in KNOWN if known.covers(case)), None)


def is_right(case: Case, verdict: str) -> bool:
    """Whether a verdict is as expected. Bridge may refuse open shapes and say which sizes would
    help."""
    if verdict.startswith("refused") and case.row["shapes"] == "open":
        return True
    return verdict == "right" or reason_of(case) is not None
