"""The number of models with each quirk; `python -m tests.quirks --count` counts them."""

from __future__ import annotations

MODELS = (295, 70)
"""The number of models: all of `roundtrip_models/`, and all models of the benchmark from
exporters."""

FIRES = {
    "openvino_cpu.absolute_value_of_shape": (4, 1),
    "openvino_cpu.arithmetic_behind_reduction": (2, 0),
    "openvino_cpu.batch_of_known_state": (1, 0),
    "openvino_cpu.branch_of_equal_shape": (45, 0),
    "openvino_cpu.channels_before_quantisation": (1, 0),
    "openvino_cpu.computed_constant": (2, 3),
    "openvino_cpu.constant_of_higher_rank": (2, 0),
    "openvino_cpu.conversion_to_bool": (0, 30),
    "openvino_cpu.converted_input": (5, 0),
    "openvino_cpu.gather_from_the_end": (4, 20),
    "openvino_cpu.group_normalization": (1, 0),
    "openvino_cpu.infinite_f64": (1, 0),
    "openvino_cpu.integers_in_f32": (5, 0),
    "openvino_cpu.lengths_of_dynamic_sequence": (0, 2),
    "openvino_cpu.matrix_times_stack": (2, 0),
    "openvino_cpu.memory_of_branch": (29, 0),
    "openvino_cpu.nan_beside_number": (4, 0),
    "openvino_cpu.nan_is_greater": (20, 1),
    "openvino_cpu.nan_to_bool": (1, 0),
    "openvino_cpu.nothing_reshaped": (2, 0),
    "openvino_cpu.one_hot_from_the_end": (1, 0),
    "openvino_cpu.range_of_nothing": (7, 1),
    "openvino_cpu.reduction_over_nothing": (26, 0),
    "openvino_cpu.rounded_quotient": (1, 0),
    "openvino_cpu.safe_loop.asked_condition": (2, 0),
    "openvino_cpu.safe_loop.copied_shapes": (19, 0),
    "openvino_cpu.safe_loop.counting_slices": (30, 0),
    "openvino_cpu.safe_loop.memory_behind": (1, 0),
    "openvino_cpu.safe_loop.memory_inside": (32, 0),
    "openvino_cpu.safe_loop.no_nested_iterators": (5, 0),
    "openvino_cpu.safe_loop.parts_of_stacks": (16, 0),
    "openvino_cpu.safe_loop.place_of_states": (3, 0),
    "openvino_cpu.safe_loop.read_states": (9, 0),
    "openvino_cpu.safe_loop.sizes_of_stacks": (2, 0),
    "openvino_cpu.safe_loop.sizes_of_states": (29, 0),
    "openvino_cpu.safe_loop.states_of_no_iteration": (59, 0),
    "openvino_cpu.safe_loop.unknown_input": (9, 0),
    "openvino_cpu.scalar_of_product": (1, 0),
    "openvino_cpu.scaled_in_place": (2, 0),
    "openvino_cpu.selection_by_itself": (1, 0),
    "openvino_cpu.tile_of_computed_repeats": (0, 1),
    "openvino_cpu.unique_of_nothing": (1, 0),
}
"""The number of these models in which a quirk fires. Quirks that fire in no model are absent."""


def said(path: str) -> str:
    """The sentence about a quirk in the documentation. Quirks for the GPU plugin alone are not
    counted, so they have no sentence."""
    if not path.startswith("openvino_cpu."):
        return ""
    ours, exported = FIRES.get(path, (0, 0))
    return (
        f"{ours} of {MODELS[0]} models of roundtrip_models/, {exported} of {MODELS[1]} of exporters"
    )
