"""Shape arithmetic and data movement of IR, written as ONNX. OpenVINO writes the files; onnxruntime
computes the same numbers from the converted ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest

import bridge
from tests.support.ir_operators import Constant as Fixed, of
from tests.support.running import OnnxRuntime, OpenVino, assert_close
from tests.support.sample import thinned

F32, I32, I64 = np.float32, np.int32, np.int64


_RNG = np.random.default_rng(3)


def random(*shape: int, type: Any = F32) -> np.ndarray:
    return _RNG.normal(size=shape).astype(type)


def count(*shape: int, type: Any = F32) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(type)


X = random(2, 3, 4, 5)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}

# Shapes
CASES["shape_of 1"] = of(1, "ShapeOf"), (X,)
CASES["shape_of i32"] = of(3, "ShapeOf", output_type="i32"), (X,)
CASES["reshape 0 and -1"] = of(1, "Reshape", special_zero=True), (X, Fixed([0, -1, 5]))
CASES["reshape i32"] = of(1, "Reshape", special_zero=False), (X, Fixed([6, -1], I32))
CASES["reshape computed"] = of(1, "Reshape", special_zero=True), (X, np.array([4, -1, 3]))
CASES["squeeze"] = of(1, "Squeeze"), (random(1, 3, 1), Fixed([0, -1]))
CASES["squeeze scalar axis"] = of(1, "Squeeze"), (random(1, 3, 1), Fixed(2))
CASES["squeeze all"] = of(1, "Squeeze"), (random(1, 3, 1),)
CASES["squeeze skips"] = of(15, "Squeeze", allow_axis_skip=True), (random(1, 3, 1), Fixed([0, 1]))
CASES["unsqueeze"] = of(1, "Unsqueeze"), (random(3, 4), Fixed([0, -1], I32))
CASES["unsqueeze scalar axis"] = of(1, "Unsqueeze"), (random(3, 4), Fixed(1))
ONE = np.array(-0.5, F32)
for axis in (0, -1):  # the axis of a scalar
    CASES[f"squeeze a scalar {axis}"] = of(1, "Squeeze"), (ONE, Fixed([axis]))
    CASES[f"sum of a scalar {axis}"] = of(1, "ReduceSum", keep_dims=False), (ONE, Fixed([axis]))
    CASES[f"maximum of a scalar {axis}"] = of(1, "ReduceMax", keep_dims=False), (ONE, Fixed(axis))
    CASES[f"softmax of a scalar {axis}"] = of(8, "Softmax", axis=axis), (ONE,)
    CASES[f"one_hot of a scalar {axis}"] = (
        of(1, "OneHot", axis=axis), (np.array(2), Fixed(3), Fixed(1.5, F32), Fixed(0.5, F32)),
    )  # fmt: skip
CASES["transpose"] = of(1, "Transpose"), (X, Fixed([0, 3, 1, 2], I32))
CASES["transpose, empty order"] = of(1, "Transpose"), (X, Fixed(np.zeros(0)))
CASES["broadcast numpy"] = of(1, "Broadcast", mode="numpy"), (random(3, 1), Fixed([2, 3, 4]))
CASES["broadcast bidirectional"] = (
    of(3, "Broadcast", mode="bidirectional"), (random(3, 4), Fixed([2, 1, 1], I32)),
)  # fmt: skip
for axes in ([1, 2], [0, 2]):
    CASES[f"broadcast explicit {axes}"] = (
        of(3, "Broadcast", mode="explicit"), (random(3, 4), Fixed([3, 3, 4]), Fixed(axes)),
    )  # fmt: skip
CASES["broadcast computed axes"] = (
    of(3, "Broadcast", mode="explicit"), (random(3, 4), Fixed([3, 2, 4]), np.array([0, 2])),
)  # fmt: skip
for repeats in ([2, 3], [3], [2, 1, 3]):
    CASES[f"tile {repeats}"] = of(1, "Tile"), (random(2, 3), Fixed(repeats))
CASES["concat"] = of(1, "Concat", axis=-2), (random(2, 3), random(1, 3), random(4, 3))
CASES["concat i32"] = of(1, "Concat", axis=0), (count(2, type=I32), count(3, type=I32))
for end, step, type in ((9, 2, I32), (-3, -2, I64), (2.6, 0.5, F32)):
    CASES[f"range 1 {end}"] = (
        of(1, "Range"), (np.array(1, type), np.array(end, type), np.array(step, type)),
    )  # fmt: skip
CASES["range to f32"] = (
    of(4, "Range", output_type="f32"), (np.array(1, I32), np.array(7, I32), np.array(2, I32)),
)  # fmt: skip
CASES["range of f16 to f32"] = (
    of(4, "Range", output_type="f32"), tuple(np.array(x, np.float16) for x in (0, 3, 0.5)),
)  # fmt: skip
CASES["range mixed"] = (
    of(4, "Range", output_type="i64"), (np.array(1, I32), np.array(7, I64), np.array(2, I32)),
)  # fmt: skip
CASES["identity"] = of(16, "Identity"), (X,)

# Slices
for name, bounds in {
    "forward": ([1, 0], [3, 2], [1, 1], [2, 1]),
    "steps": ([0, -1], [5, -9], [2, -2], [3, 0]),
    "negative": ([-3], [-1], [1], [-1]),
    "clamped": ([-99, 99], [99, -99], [1, -1], [2, 3]),
}.items():
    CASES[f"slice {name}"] = of(8, "Slice"), (X, *(Fixed(bound) for bound in bounds))
CASES["slice without axes"] = of(8, "Slice"), (X, Fixed([0, 1]), Fixed([2, 3]), Fixed([1, 1]))
CASES["slice mixed types"] = (
    of(8, "Slice"), (X, Fixed([1], I32), np.array([3]), Fixed([1], I32), Fixed([2], np.int8)),
)  # fmt: skip
MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
STRIDED: dict[str, tuple[tuple[list[int], ...], tuple[list[int], ...]]] = {
    "plain": (([0, 1, 0], [2, 3, 2], [1, 1, 1]), ([0] * 3, [0] * 3)),
    "masks": (([1, 1, 1], [1, 2, 2], [1, 2, 1]), ([1, 0, 1], [0, 1, 1])),
    "backward": (([9, -1, 3], [0, 0, 0], [-1, -1, -2]), ([0, 1, 0], [0, 0, 1])),
    "shrink": (([1, -1, 0], [2, 0, 2], [1, 1, 1]), ([0] * 3, [0] * 3, [0], [1, 1, 0])),
    "new axes": (([0, 1, 0], [2, 3, 2], [1, 1, 1]), ([0] * 3, [0] * 3, [1, 0, 1])),
    "ellipsis": (([1, 0, 1], [2, 0, 3], [1, 1, 1]), ([0] * 3, [0] * 3, [0], [0], [0, 1, 0])),
    "all": (
        ([0, 1, 0, -2, 0], [1, 2, 0, -1, 2], [1, 1, 1, 1, 1]),
        ([0] * 5, [0] * 5, [1], [0, 1, 0, 1], [0, 0, 1]),
    ),
    "fewer": (([1, 2], [2, 3], [1, 1]), ([0] * 2, [0] * 2)),
}
for name, (bounds, masks) in STRIDED.items():
    count_ = len(bounds[0])
    attributes = {
        mask: (list(bits) + [0] * count_)[:count_]
        for mask, bits in zip(MASKS, (*masks, [], [], []), strict=False)
    }
    strided = of(1, "StridedSlice", **attributes)
    CASES[f"strided_slice {name}"] = strided, (X, *(Fixed(bound) for bound in bounds))
    if name != "backward":
        CASES[f"strided_slice {name} computed"] = (
            strided, (X, *(np.array(bound) for bound in bounds[:2]), Fixed(bounds[2])),
        )  # fmt: skip
CASES["slice_scatter"] = (
    of(15, "SliceScatter"),
    (X, random(2, 3, 2, 5), Fixed([3]), Fixed([-9]), Fixed([-2]), Fixed([2])),
)
CASES["split"] = of(1, "Split", num_splits=2), (X, Fixed(-2))
CASES["variadic_split"] = of(1, "VariadicSplit"), (X, Fixed(3), Fixed([1, -1, 2]))
CASES["variadic_split computed"] = (
    of(1, "VariadicSplit"), (X, Fixed(3, I32), np.array([1, 0, -1])),
)  # fmt: skip
for mode in ("constant", "edge", "reflect", "symmetric"):
    CASES[f"pad {mode}"] = (
        of(1, "Pad", pad_mode=mode), (X, Fixed([0, 1, 2, 0]), Fixed([1, 0, 2, 1], I32)),
    )  # fmt: skip
    CASES[f"pad negative {mode}"] = (
        of(12, "Pad", pad_mode=mode), (X, Fixed([0, -1, 2, 0]), Fixed([0, 0, -1, -2])),
    )  # fmt: skip
CASES["pad value"] = (
    of(1, "Pad", pad_mode="constant"), (X, np.array([1, 0, 0, 2]), Fixed([0] * 4), Fixed(7, F32)),
)  # fmt: skip
CASES["pad i32"] = (
    of(1, "Pad", pad_mode="constant"), (count(3, type=I32), Fixed([1]), Fixed([2]), Fixed(7, I32)),
)  # fmt: skip
CASES["reverse index"] = of(1, "Reverse", mode="index"), (X, Fixed([1, 3]))
CASES["reverse mask"] = of(1, "Reverse", mode="mask"), (X, Fixed([False, True, False, True], bool))
CASES["reverse_sequence"] = (
    of(1, "ReverseSequence", batch_axis=0, seq_axis=1), (X, np.array([3, 2], I32)),
)  # fmt: skip
for axes in ((-4, -3), (1, 0), (0, 3), (-2, 1), (3, 2)):
    lengths = np.array([2, 1, 2, 2, 1], I32)[: X.shape[axes[0]]]
    CASES[f"reverse_sequence {axes}"] = (
        of(1, "ReverseSequence", batch_axis=axes[0], seq_axis=axes[1]), (X, lengths),
    )  # fmt: skip
for shift, axes in (([3], [1]), ([1, -7], [0, 3]), ([2, 1, -1], [1, 2, 1])):
    CASES[f"roll {shift} {axes}"] = of(7, "Roll"), (X, np.array(shift), Fixed(axes))

# Gather and scatter
INDICES = np.array([[0, 2], [1, 1]], I32)
for axis in (0, 1, -1):
    CASES[f"gather 1 {axis}"] = of(1, "Gather"), (random(3, 3, 3), INDICES, Fixed(axis))
CASES["gather 7"] = of(7, "Gather", batch_dims=0), (X, np.array(1), Fixed(1))
CASES["gather negative"] = of(8, "Gather", batch_dims=0), (X, np.array([-1, 0]), Fixed([1]))
for axis, batch in ((1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (2, -1)):
    indices = _RNG.integers(-3, 3, (2, 3, 2) if batch in (2, -1) else (2, 4))
    CASES[f"gather axis {axis} batch {batch}"] = (
        of(8, "Gather", batch_dims=batch), (random(2, 3, 4, 3), indices[..., :3], Fixed(axis)),
    )  # fmt: skip
CASES["gather out of range"] = of(8, "Gather"), (X, Fixed([[0, 9], [-5, -3]]), Fixed(1))
CASES["gather rows out of range"] = (
    of(8, "Gather", batch_dims=1), (X, Fixed([[5, -9], [1, 0]]), Fixed(-1)),
)  # fmt: skip
CASES["gather scalar out of range"] = of(8, "Gather"), (X, Fixed(4), Fixed(-2))
CASES["gather i8 indices"] = of(8, "Gather"), (X, np.array([1, 0], np.int8), Fixed(1))
CASES["gather_elements"] = of(6, "GatherElements", axis=1), (count(2, 3), INDICES)
PLACES = np.array([[[0, 1], [-1, 2]], [[1, 0], [2, -2]]], I32)
CASES["gather_nd 5"] = of(5, "GatherND", batch_dims=0), (random(3, 4, 2), PLACES)
CASES["gather_nd 5 batch"] = (
    of(5, "GatherND", batch_dims=2), (X, _RNG.integers(0, 4, (2, 3, 4, 1))),
)  # fmt: skip
CASES["gather_nd 8 batch"] = (
    of(8, "GatherND", batch_dims=2), (X, _RNG.integers(0, 4, (2, 3, 4, 1))),
)  # fmt: skip
CASES["gather_tree"] = (
    of(1, "GatherTree"),
    (
        np.array([[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [9, 5, 1]], [[2, 6, 4], [9, 8, 7]]], I32),
        np.array([[[0, 0, 0], [0, 0, 0]], [[0, 1, 1], [2, 1, 0]], [[2, 1, 2], [1, 1, 0]]], I32),
        np.array([3, 2], I32),
        np.array(9, I32),
    ),
)
for axis in (0, 2):
    CASES[f"scatter_update {axis}"] = (
        of(3, "ScatterUpdate"),
        (X, np.array([1, 0]), random(2, 3, 4, 5) if axis == 0 else random(2, 3, 2, 5), Fixed(axis)),
    )
CASES["scatter_update 2-d indices"] = (
    of(3, "ScatterUpdate"), (X, np.array([[3, 0]]), random(2, 3, 1, 2, 5), Fixed(-2)),
)  # fmt: skip
CASES["scatter_elements 3"] = (
    of(3, "ScatterElementsUpdate"),
    (random(3, 3), np.array([[0, 2]], np.int16), random(1, 2), Fixed(1)),
)
for reduction in ("none", "sum", "prod", "min", "max", "mean"):
    for initial in (True, False):
        for type in (F32, I32):
            CASES[f"scatter_elements {reduction} {initial} {type.__name__}"] = (
                of(12, "ScatterElementsUpdate", reduction=reduction, use_init_val=initial),
                (
                    (9 * random(4)).astype(type),
                    np.array([1, 3, -2] if reduction == "none" else [1, 3, 1, -1]),
                    (9 * random(3 if reduction == "none" else 4)).astype(type),
                    Fixed(0),
                ),
            )
CASES["scatter_nd 4"] = (
    of(4, "ScatterNDUpdate"), (random(4, 2), np.array([[3], [0]], I32), random(2, 2)),
)  # fmt: skip
for reduction in ("none", "sum", "sub", "prod", "min", "max"):
    CASES[f"scatter_nd {reduction}"] = (
        of(15, "ScatterNDUpdate", reduction=reduction),
        (random(4, 2), np.array([[3], [0]]), random(2, 2)),
    )
# onnxruntime reduces no f16.
HALF = (4 * np.random.default_rng(9).normal(size=(2, 4, 2))).astype(np.float16)
for reduction in ("sum", "sub", "max"):
    CASES[f"scatter_nd {reduction} f16"] = (
        of(15, "ScatterNDUpdate", reduction=reduction),
        (HALF[0], np.array([[3], [0]]), HALF[1, :2]),
    )
for initial in (True, False):
    CASES[f"scatter_elements mean {initial} f16"] = (
        of(12, "ScatterElementsUpdate", reduction="mean", use_init_val=initial),
        (HALF[0], np.array([[1, 1], [1, 3]]), HALF[1, :2], Fixed(0)),
    )

# Searching and making
for mode, version in (("ignore_negative", 1), ("ignore_negative", 16), ("normalize", 16)):
    attributes = {"negative_indices_mode": mode} if version == 16 else {}
    CASES[f"one_hot {version} {mode}"] = (
        of(version, "OneHot", axis=1, **attributes),
        (np.array([[0, -1], [5, 2]], I32), Fixed(3, I32), Fixed(5, F32), Fixed(2, F32)),
    )
for type in (np.uint8, I32, np.float64, np.float16, bool):
    CASES[f"one_hot {type.__name__}"] = (
        of(1, "OneHot", axis=-1), (np.array([0, 2]), Fixed(3), Fixed(5, type), Fixed(0, type)),
    )  # fmt: skip
CASES["eye"] = of(9, "Eye", output_type="f32"), (np.array(3), np.array(4), np.array(-1))
CASES["eye batch"] = (
    of(9, "Eye", output_type="i32"), (Fixed(2), Fixed(3), Fixed(1), Fixed([2, 2])),
)  # fmt: skip
CASES["non_zero"] = of(3, "NonZero", output_type="i32"), (np.array([[0, 1, 2], [3, 0, 0]], I32),)
UNIQUE = np.array([[2, 1, 2], [2, 1, 2], [0, 5, 0]], F32)
CASES["unique"] = of(10, "Unique", sorted=True), (UNIQUE,)
CASES["unique axis"] = (
    of(10, "Unique", sorted=True, index_element_type="i32", count_element_type="i32"),
    (UNIQUE, Fixed([1])),
)
CASES["unique unsorted"] = of(10, "Unique", sorted=False), (UNIQUE,)
BOUNDS = np.array([-0.5, 0.0, 0.7], F32)
CASES["bucketize none"] = of(3, "Bucketize", output_type="i32"), (random(2, 3), Fixed([]))
for right in (True, False):
    CASES[f"bucketize {right}"] = (
        of(3, "Bucketize", output_type="i32", with_right_bound=right),
        (np.array([[-1, -0.5, 0.1], [0.7, 0, 3]], F32), BOUNDS),
    )
    CASES[f"search_sorted {right}"] = (
        of(15, "SearchSorted", right_mode=right),
        (np.sort(random(2, 5), axis=1), random(2, 3)),
    )
    CASES[f"search_sorted 1-d {right}"] = (
        of(15, "SearchSorted", right_mode=right), (BOUNDS, np.array([[0.7, -1], [0, 9]], F32)),
    )  # fmt: skip

SPARSE = [[3, 1], [0, 3], [3, 0], [0, 1]]
for type in (I32, I64):
    CASES[f"fill empty rows {type.__name__}"] = (
        of(16, "SparseFillEmptyRows"),
        (random(4), np.array([6, 4], type), np.array(SPARSE, type), np.array(-1, F32)),
    )  # fmt: skip
CASES["fill empty rows of known shape"] = (
    of(16, "SparseFillEmptyRows"),
    (count(4, type=I32), Fixed([4, 5]), Fixed(SPARSE), Fixed(9, I32)),
)  # fmt: skip
CASES["fill empty rows of nothing"] = (
    of(16, "SparseFillEmptyRows"),
    (random(0), Fixed([3, 4]), np.zeros((0, 2), I64), Fixed(9, F32)),
)  # fmt: skip
CASES["fill no rows"] = (
    of(16, "SparseFillEmptyRows"),
    (random(2), Fixed([2, 2]), np.array([[1, 1], [0, 0]]), Fixed(9, F32)),
)  # fmt: skip

# Blocks and images
for mode in ("blocks_first", "depth_first"):
    CASES[f"space_to_depth {mode}"] = (
        of(1, "SpaceToDepth", mode=mode, block_size=2), (random(2, 3, 4, 6),),
    )  # fmt: skip
    CASES[f"depth_to_space {mode}"] = (
        of(1, "DepthToSpace", mode=mode, block_size=2), (random(2, 8, 2, 3),),
    )  # fmt: skip
    CASES[f"space_to_depth 3-d {mode}"] = (
        of(1, "SpaceToDepth", mode=mode, block_size=2), (random(2, 3, 4),),
    )  # fmt: skip
    CASES[f"depth_to_space 5-d {mode}"] = (
        of(1, "DepthToSpace", mode=mode, block_size=2), (random(1, 16, 2, 3, 1),),
    )  # fmt: skip
CASES["space_to_batch"] = (
    of(2, "SpaceToBatch"),
    (random(1, 2, 3, 5), Fixed([1, 1, 2, 3]), Fixed([0, 0, 1, 0]), Fixed([0, 0, 0, 1])),
)
CASES["batch_to_space"] = (
    of(2, "BatchToSpace"),
    (random(12, 2, 3, 2), Fixed([1, 1, 2, 3]), Fixed([0, 0, 1, 0]), Fixed([0, 0, 0, 1])),
)
CASES["shuffle_channels"] = of(3, "ShuffleChannels", axis=-3, group=2), (random(2, 6, 2, 3),)
CASES["reorg_yolo"] = of(2, "ReorgYolo", stride=[2]), (count(1, 4, 4, 6),)
for pad in ("valid", "same_upper", "same_lower"):
    CASES[f"extract_image_patches {pad}"] = (
        of(3, "ExtractImagePatches", sizes=[2, 3], strides=[2, 1], rates=[1, 2], auto_pad=pad),
        (count(1, 2, 7, 8),),
    )
CASES["col2im"] = (
    of(15, "Col2Im", strides=[2, 1], dilations=[1, 2], pads_begin=[1, 0], pads_end=[0, 1]),
    (random(2, 12, 15), Fixed([5, 6]), Fixed([2, 2])),
)
CASES["col2im one image"] = (
    of(15, "Col2Im", strides=[1, 1], dilations=[1, 1], pads_begin=[0, 0], pads_end=[0, 0]),
    (random(12, 9), Fixed([4, 4]), Fixed([2, 2])),
)
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        CASES[f"grid_sample {mode} {padding}"] = (
            of(9, "GridSample", mode=mode, padding_mode=padding, align_corners=mode == "bilinear"),
            (random(2, 3, 4, 5), 1.3 * random(2, 3, 2, 2)),
        )

# Interpolate
IMAGE = random(1, 2, 5, 7)
SIZES = Fixed([9, 3])
for coordinates in (
    "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners",
):  # fmt: skip
    for mode in ("nearest", "linear", "linear_onnx", "cubic"):
        for nearest in (
            ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
            if mode == "nearest"
            else ("floor",)
        ):
            CASES[f"interpolate {coordinates} {mode} {nearest}"] = (
                of(
                    11, "Interpolate", mode=mode, shape_calculation_mode="sizes",
                    nearest_mode=nearest, coordinate_transformation_mode=coordinates,
                    cube_coeff=-0.6, antialias=False,
                    pads_begin=[0], pads_end=[0],
                ),
                (IMAGE, SIZES, Fixed([2, 3])),
            )  # fmt: skip


def interpolate(version: int, mode: str, by: str, **attributes: Any) -> Callable[..., Any]:
    defaults = {
        "coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_floor",
        "antialias": False, "pads_begin": [0], "pads_end": [0], "cube_coeff": -0.75,
    }  # fmt: skip
    return of(
        version, "Interpolate", **(defaults | attributes), mode=mode, shape_calculation_mode=by
    )


# Integers are computed in f32, rounded, and clamped to the limits of the type.
SMALL = np.random.default_rng(9).integers(0, 256, IMAGE.shape)
for mode in ("nearest", "linear", "cubic"):
    for type in (np.uint8, np.int8, I32):
        CASES[f"interpolate {mode} {type.__name__}"] = (
            interpolate(11, mode, "sizes"), (SMALL.astype(type), Fixed([9, 3]), Fixed([2, 3])),
        )  # fmt: skip
for mode in ("nearest", "linear", "linear_onnx", "cubic"):
    CASES[f"interpolate scales {mode}"] = (
        interpolate(11, mode, "scales"), (IMAGE, Fixed([1.7, 0.6], F32), Fixed([2, 3])),
    )  # fmt: skip
    CASES[f"interpolate 4 {mode}"] = (
        interpolate(4, mode, "sizes"),
        (IMAGE, SIZES, Fixed([1.0, 1.0], F32), Fixed([2, 3])),
    )
    CASES[f"interpolate 4 scales {mode}"] = (
        interpolate(4, mode, "scales"),
        (IMAGE, SIZES, Fixed([1.7, 0.6], F32), Fixed([2, 3])),
    )
    CASES[f"interpolate pads {mode}"] = (
        interpolate(11, mode, "sizes", pads_begin=[0, 0, 1, 0], pads_end=[0, 0, 0, 2]),
        (IMAGE, SIZES, Fixed([2, 3])),
    )
for mode in ("bilinear_pillow", "bicubic_pillow"):
    for by, target in (("sizes", SIZES), ("scales", Fixed([1.7, 0.6], F32))):
        CASES[f"interpolate {mode} {by}"] = (
            interpolate(11, mode, by, antialias=True), (IMAGE, target, Fixed([2, 3])),
        )  # fmt: skip
CASES["interpolate all axes"] = interpolate(11, "nearest", "sizes"), (IMAGE, Fixed([1, 2, 3, 9]))
CASES["interpolate turned axes"] = (
    interpolate(11, "linear", "sizes"), (IMAGE, Fixed([3, 9]), Fixed([3, 2])),
)  # fmt: skip
CASES["interpolate 3-d cubic"] = (
    interpolate(11, "cubic", "sizes"), (random(1, 2, 6), Fixed([9]), Fixed([2])),
)  # fmt: skip
CASES["interpolate 5-d"] = (
    interpolate(11, "linear_onnx", "sizes"),
    (random(1, 2, 3, 4, 5), Fixed([5, 3, 9]), Fixed([2, 3, 4])),
)
VOLUME = random(1, 2, 5, 6, 7), Fixed([9, 3, 16])
for mode in ("linear", "linear_onnx"):
    CASES[f"interpolate 5-d {mode} antialias"] = (
        interpolate(11, mode, "sizes", antialias=True), (*VOLUME, Fixed([2, 3, 4])),
    )  # fmt: skip
    for by, target in (("sizes", [1, 2, 9, 3]), ("scales", [1, 1, 1.7, 0.6])):
        CASES[f"interpolate tf kept axes {mode} {by}"] = (
            interpolate(11, mode, by, coordinate_transformation_mode="tf_half_pixel_for_nn"),
            (IMAGE, Fixed(target, I64 if by == "sizes" else F32)),
        )
for mode in ("nearest", "linear", "cubic"):
    CASES[f"interpolate scale without effect {mode}"] = (
        interpolate(11, mode, "scales"), (IMAGE, Fixed([1.1, 1.7], F32), Fixed([2, 3])),
    )  # fmt: skip
CASES["interpolate tf kept sizes"] = (
    interpolate(11, "linear", "sizes", coordinate_transformation_mode="tf_half_pixel_for_nn"),
    (IMAGE, np.array([5, 9]), Fixed([2, 3])),
)  # fmt: skip
for image, target, axes, pad in (
    (*VOLUME, [2, 3, 4], 0), (*VOLUME, [2, 3, 4], 1), (IMAGE[0], Fixed([3]), [2], 0),
    (IMAGE, SIZES, [1, 2], 0), (IMAGE[0], Fixed([3]), [2], 1),
):  # fmt: skip
    CASES[f"interpolate 1 antialias {image.ndim} {axes} {pad}"] = (
        of(
            1, "Interpolate", axes=axes, mode="linear", align_corners=False, antialias=True,
            pads_begin=[pad], pads_end=[0],
        ),
        (image, target),
    )  # fmt: skip
for mode in ("nearest", "linear"):
    for aligned in (True, False):
        CASES[f"interpolate 1 {mode} {aligned}"] = (
            of(
                1, "Interpolate", axes=[2, 3], mode=mode, align_corners=aligned, antialias=False,
                pads_begin=[0], pads_end=[0],
            ),
            (IMAGE, SIZES),
        )  # fmt: skip

# Embeddings
TABLE = random(5, 2)
CASES["embedding_bag_packed"] = (
    of(3, "EmbeddingBagPackedSum"), (TABLE, np.array([[0, 2], [1, 1]], I32), random(2, 2)),
)  # fmt: skip
CASES["embedding_bag_packed mean"] = (
    of(15, "EmbeddingBagPacked", reduction="mean"), (TABLE, np.array([[0, 2], [1, 1]])),
)  # fmt: skip
BAGS = (TABLE, np.array([0, 2, 3, 4]), np.array([0, 2, 2]))
CASES["embedding_bag_offsets"] = of(3, "EmbeddingBagOffsetsSum"), BAGS
for default in (0, -1):
    CASES[f"embedding_bag_offsets {default}"] = (
        of(15, "EmbeddingBagOffsets", reduction="sum"), (*BAGS, Fixed(default), random(4)),
    )  # fmt: skip
    CASES[f"embedding_bag_offsets mean {default}"] = (
        of(15, "EmbeddingBagOffsets", reduction="mean"), (*BAGS, Fixed(default)),
    )  # fmt: skip
SEGMENTS = (TABLE, np.array([0, 2, 3, 4]), np.array([0, 0, 2, 2]))
CASES["embedding_segments_sum"] = of(3, "EmbeddingSegmentsSum"), (*SEGMENTS, Fixed(3))
CASES["embedding_segments_sum default"] = (
    of(3, "EmbeddingSegmentsSum"), (*SEGMENTS, Fixed(4), Fixed(1), random(4)),
)  # fmt: skip
for fill in ("zero", "lowest"):
    for type in (F32, I32):
        CASES[f"segment_max {fill} {type.__name__}"] = (
            of(16, "SegmentMax", fill_mode=fill),
            ((9 * random(4, 2)).astype(type), np.array([0, 0, 2, 2]), Fixed(4)),
        )
CASES["segment_max cut"] = (
    of(16, "SegmentMax", fill_mode="zero"), (random(4, 2), np.array([0, 0, 2, 3]), Fixed(2)),
)  # fmt: skip
CASES["segment_max no number"] = (
    of(16, "SegmentMax", fill_mode="zero"), (random(4, 2), np.array([0, 0, 2, 3])),
)  # fmt: skip

NOT_DYNAMIC = (
    "squeeze skips", "squeeze all", "gather out", "gather rows out", "gather scalar out",
    "extract_image_patches",
    "reorg_yolo", "embedding_", "segment_", "interpolate asymmetric", "interpolate align_corners",
    "interpolate tf", "interpolate pytorch", "interpolate scale without", "grid_sample",
    "scatter_elements", "one_hot", "eye", "gather_tree", "fill empty rows of nothing",
)  # fmt: skip
"""Cases without a dynamic run.

Some have no sizes to leave open. Some need sizes at conversion for the rank of the result. For the
rest OpenVINO does not accept weights of unknown size, or empty ones.
"""


def build(name: str, dynamic: bool) -> tuple[ov.Model, list[np.ndarray]]:
    """The model of a case, with known or unknown sizes of its inputs, and values for them."""
    make, arguments = CASES[name]
    values = [a for a in arguments if not isinstance(a, Fixed)]
    inputs, parameters = [], []
    for argument in arguments:
        if isinstance(argument, Fixed):
            constant = ov.op.Constant(ov.Tensor(argument.value)) if argument.value.size else (
                ov.op.Constant(ov.Type.i64, ov.Shape([0]), [])
            )  # fmt: skip
            inputs.append(constant.output(0))
            continue
        data = argument.dtype.kind == "f"  # Shapes and indices keep their sizes.
        dims = [-1] * argument.ndim if dynamic and data else list(argument.shape)
        parameter = ov.op.Parameter(ov.Type(argument.dtype), ov.PartialShape(dims))
        parameters.append(parameter)
        inputs.append(parameter.output(0))
    node = make(*inputs)
    results = [ov.op.Result(output) for output in node.outputs()]
    return ov.Model(results, parameters), values


def check(name: str, dynamic: bool, folder: Path) -> None:
    """Converts a case to ONNX and compares onnxruntime with OpenVINO."""
    model, values = build(name, dynamic)
    path = folder / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    expected = OpenVino(path).run(values)
    onnx.checker.check_model(made := bridge.to_onnx(path), full_check=True)
    feed = {item.name: value for item, value in zip(made.graph.input, values, strict=True)}
    assert_close(OnnxRuntime(made).run(feed), expected)


@pytest.mark.parametrize("name", thinned(CASES, 2))
def test_static(name: str, tmp_path: Path) -> None:
    check(name, False, tmp_path)


@pytest.mark.parametrize(
    "name", [n for n in thinned(CASES, 2, first=1) if not n.startswith(NOT_DYNAMIC)]
)
def test_dynamic(name: str, tmp_path: Path) -> None:
    check(name, True, tmp_path)


def test_interpolate_of_mode_area(tmp_path: Path) -> None:
    """IR keeps this mode, although OpenVINO can only read it."""
    x = ov.op.Parameter(ov.Type.f32, ov.PartialShape(IMAGE.shape))
    y = of(1, "Interpolate", axes=[2, 3], mode="area")(x, ov.op.Constant(SIZES.value))
    ov.save_model(ov.Model([y], [x]), tmp_path / "model.xml")
    bridge.convert(tmp_path / "model.xml", tmp_path / "again.xml")
    again = ov.Core().read_model(tmp_path / "again.xml")
    (kept,) = [op for op in again.get_ops() if op.get_type_name() == "Interpolate"]
    assert kept.get_attributes()["mode"] == "area"
    with pytest.raises(bridge.UnsupportedError, match="does not implement the mode area"):
        bridge.to_onnx(tmp_path / "model.xml")


def test_gathering_from_an_axis_without_elements(tmp_path: Path) -> None:
    """The result is zeros, as Gather-8 specifies; OpenVINO returns uninitialised memory."""
    x = ov.op.Parameter(ov.Type.f32, ov.PartialShape([-1, 0, 3]))
    indices = ov.op.Constant(np.array([[0, 1]], I64))
    y = of(8, "Gather")(x, indices, ov.op.Constant(np.array(-2, I64)))
    ov.save_model(ov.Model([y], [x]), tmp_path / "model.xml")
    bridge.convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
    engine = OnnxRuntime(tmp_path / "model.onnx")
    (name,) = (value.name for value in onnx.load(tmp_path / "model.onnx").graph.input)
    (found,) = engine.run({name: np.zeros((2, 0, 3), F32)})
    np.testing.assert_array_equal(found, np.zeros((2, 1, 2, 3), F32))


def test_segments_without_a_number_come_back(tmp_path: Path) -> None:
    data = ov.op.Parameter(ov.Type.f32, ov.PartialShape([-1, -1]))
    segments = ov.op.Parameter(ov.Type.i64, ov.PartialShape([-1]))
    y = of(16, "SegmentMax", fill_mode="zero")(data, segments)
    ov.save_model(ov.Model([y], [data, segments]), tmp_path / "model.xml")
    bridge.convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    bridge.convert(tmp_path / "model.onnx", tmp_path / "again.xml")
    values = [X[0, 0], np.array([0, 0, 2, 3])]
    found = OpenVino(tmp_path / "again.xml").run(values)
    assert_close(found, OpenVino(tmp_path / "model.xml").run(values))


@pytest.mark.parametrize("by", ["sizes", "scales"])
def test_resizing_to_a_vector_of_unknown_length(by: str, tmp_path: Path) -> None:
    """ONNX treats an empty vector of sizes or scales as an absent one."""
    x = ov.op.Parameter(ov.Type.f32, ov.PartialShape([1, 2, -1, -1]))
    wanted = ov.op.Parameter(ov.Type.i64 if by == "sizes" else ov.Type.f32, ov.PartialShape([-1]))
    y = interpolate(11, "nearest", by)(x, wanted, ov.op.Constant(np.array([2, 3])))
    ov.save_model(ov.Model([y], [x, wanted]), tmp_path / "model.xml")
    values = [IMAGE, np.array([9, 3]) if by == "sizes" else np.array([1.7, 0.6], F32)]
    onnx.checker.check_model(made := bridge.to_onnx(tmp_path / "model.xml"), full_check=True)
    feed = {item.name: value for item, value in zip(made.graph.input, values, strict=True)}
    assert_close(OnnxRuntime(made).run(feed), OpenVino(tmp_path / "model.xml").run(values))


def test_the_axis_of_a_scalar_stays_in_ir(tmp_path: Path) -> None:
    x = ov.op.Parameter(ov.Type.f32, ov.PartialShape([]))
    y = of(1, "ReduceSum", keep_dims=False)(x, ov.op.Constant(np.array([0])))
    ov.save_model(ov.Model([y], [x]), tmp_path / "model.xml")
    bridge.convert(tmp_path / "model.xml", tmp_path / "again.xml")
    again = ov.Core().read_model(tmp_path / "again.xml")
    assert [op.get_type_name() for op in again.get_ordered_ops()].count("ReduceSum") == 1
