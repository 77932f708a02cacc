"""The number of models with each quirk; `python -m tests.quirks --count` counts them."""

from __future__ import annotations

from bridge.quirks.quirk import CPU, Quirk

MODELS = (295, 70)
"""The number of models: all of `roundtrip_models/`, and all models of the benchmark from
exporters."""

FIRES = {
    "absolute_value_of_shape": (4, 1),
    "arithmetic_behind_reduction": (2, 0),
    "asked_condition": (2, 0),
    "batch_of_known_state": (1, 0),
    "branch_of_equal_shape": (45, 0),
    "cast_to_bool": (1, 0),
    "channels_before_quantisation": (1, 0),
    "computed_constant": (2, 3),
    "constant_of_higher_rank": (2, 0),
    "conversion_to_bool": (0, 30),
    "converted_input": (5, 0),
    "copied_shapes": (19, 0),
    "counting_slices": (30, 0),
    "empty_range": (7, 1),
    "gather_from_the_end": (4, 20),
    "group_normalization": (1, 0),
    "infinite_f64": (1, 0),
    "integers_in_f32": (5, 0),
    "known_empty_tensor": (2, 0),
    "lengths_of_dynamic_sequence": (0, 2),
    "matrix_times_stack": (2, 0),
    "memory_behind": (1, 0),
    "memory_inside": (32, 0),
    "memory_of_branch": (29, 0),
    "nan_beside_number": (4, 0),
    "nan_is_greater": (20, 1),
    "no_nested_iterators": (5, 0),
    "one_hot_from_the_end": (1, 0),
    "parts_of_stacks": (16, 0),
    "place_of_states": (3, 0),
    "read_states": (9, 0),
    "reduction_over_empty_axis": (26, 0),
    "rounded_quotient": (1, 0),
    "scalar_of_product": (1, 0),
    "scaled_in_place": (2, 0),
    "selection_by_itself": (1, 0),
    "sizes_of_stacks": (2, 0),
    "sizes_of_states": (29, 0),
    "states_without_iteration": (59, 0),
    "tile_of_computed_repeats": (0, 1),
    "unique_of_empty_tensor": (1, 0),
    "unknown_input": (9, 0),
}
"""The number of these models in which a quirk fires. Quirks that fire in no model are absent."""


def said(quirk: Quirk) -> str:
    """The sentence about a quirk in the documentation. Quirks for the GPU plugin alone are not
    counted, so they have no sentence."""
    if CPU not in quirk.engines:
        return ""
    ours, exported = FIRES.get(quirk.name, (0, 0))
    return (
        f"{ours} of {MODELS[0]} models of roundtrip_models/, {exported} of {MODELS[1]} of exporters"
    )
