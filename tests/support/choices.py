"""The readers for which the tests write IR: OpenVINO's newest CPU plugin, the oldest release, and
any reader."""

from __future__ import annotations

from bridge.options import OLDEST, ConvertOptions

CHOICES: dict[str, ConvertOptions] = {
    "default": {},
    "old": {"openvino": OLDEST},
    "none": {"device": "ANY"},
}
