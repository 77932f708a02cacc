"""An IR with odd constants and attributes is converted or refused, without a traceback."""

from __future__ import annotations

import pytest

import bridge.library.api
from tests.operators.odd_constants import (
    LEAST,
    MOST,
    Edit,
    cases,
    edited,
    edits,
    fault,
    of_constants,
)

EVERY = 300
"""The share of all files; `python -m tests.operators.odd_constants` converts all of them."""

FOUND: tuple[tuple[str, Edit], ...] = (
    ("matmul ISTFT False", (2, "numbers", -1)),
    ("matmul STFT False", (2, "numbers", LEAST)),
    ("matmul STFT False, short window", (1, "shape", "")),
    ("matmul LSTMCell-4", (5, "shape", "3")),
    ("matmul DFT [2, 1] [4, -1]", (2, "shape", "")),
    ("nn adaptive average (3, 5)", (1, "numbers", 0)),
    ("nn convolution same_upper 1", (2, "dilations", f"{MOST},{MOST}")),
    ("nn roi half_pixel_for_nn max 2", (3, "pooled_h", str(LEAST))),
    ("nn detectron detections 5 of small regions", (4, "num_classes", str(MOST))),
    ("nn deformable of positions 1.0", (2, "group_size", str(MOST))),
    ("nn transposed groups 1-D", (1, "shape", "1")),
    ("shape extract_image_patches same_upper", (1, "sizes", "-1,-1")),
)


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge.library.api, "DEBUG", False)


@pytest.mark.parametrize(("name", "edit"), FOUND)
def test_what_was_found(name: str, edit: Edit) -> None:
    ir = of_constants(name)
    assert ir is not None and fault(ir, edit) is None


def test_a_frame_of_no_length_is_named() -> None:
    ir = of_constants("matmul ISTFT False")
    assert ir is not None
    with pytest.raises(bridge.BridgeError, match="its frame length is -1"):
        bridge.to_onnx(edited(ir, (2, "numbers", -1)))


def test_a_sample_of_odd_constants() -> None:
    every = [
        (name, ir, edit)
        for name in cases()
        if (ir := of_constants(name)) is not None
        for edit in edits(ir)
    ]
    assert len(every) > 100_000
    found = {f"{name} {edit}": fault(ir, edit) for name, ir, edit in every[::EVERY]}
    assert {what: why for what, why in found.items() if why} == {}
