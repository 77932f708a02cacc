"""Greedy generation: a merged decoder in onnxruntime, and its stateful IR in OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import openvino

from tests.support.running import EXACT

TOKENS = 50
PROMPT = np.array([[2, 7, 5], [2, 9, 11]], np.int64)


def same_tokens(merged: Path, stateful: Path) -> int:
    """The number of equal tokens before the first difference."""
    session = onnxruntime.InferenceSession(str(merged), providers=["CPUExecutionProvider"])
    compiled = openvino.Core().compile_model(stateful, "CPU", EXACT)
    request = compiled.create_infer_request()
    ports = {port.name: port for port in session.get_inputs()}
    outputs = [port.name for port in session.get_outputs()]
    taken = {name for port in compiled.inputs for name in port.names}
    drawn = _of_an_encoder(ports)
    past = {
        name: np.zeros([d if isinstance(d, int) else (0, len(PROMPT))[not a] for a, d in
                        enumerate(port.shape)], np.float32)
        for name, port in ports.items() if name.startswith("past")
    }  # fmt: skip
    ids, length = PROMPT, 0
    for call in range(TOKENS):
        length += ids.shape[1]
        feeds = {**drawn, **_of_words(ids, length)}
        feeds = {name: value for name, value in feeds.items() if name in ports}
        found = dict(zip(outputs, session.run(
            outputs, {**feeds, **past, "use_cache_branch": np.array([call > 0])}
        ), strict=True))  # fmt: skip
        for name, value in found.items():
            # As in optimum, later calls give no keys and values of an encoder.
            if name.startswith("present") and not (call and ".encoder." in name):
                past[name.replace("present", "past_key_values")] = value
        given = {name: value for name, value in feeds.items() if name in taken}
        logits = request.infer(given)["logits"]
        ids = found["logits"][:, -1:].argmax(-1)
        if (logits[:, -1:].argmax(-1) != ids).any():
            return call
    return TOKENS


def _of_words(ids: np.ndarray, length: int) -> dict[str, np.ndarray]:
    """The inputs that depend on the words; `length` words exist so far."""
    batch, words = ids.shape
    positions = np.arange(length - words, length, dtype=np.int64)
    return {
        "input_ids": ids,
        "attention_mask": np.ones((batch, length), np.int64),
        "position_ids": np.tile(positions, (batch, 1)),
    }


def _of_an_encoder(ports: dict[str, Any]) -> dict[str, np.ndarray]:
    """Random outputs of an encoder: the second sequence is shorter."""
    hidden = ports.get("encoder_hidden_states")
    if hidden is None:
        return {}
    _, frames, width = hidden.shape
    frames = frames if isinstance(frames, int) else 1500 if "audio" in str(frames) else 7
    mask = np.ones((len(PROMPT), frames), np.int64)
    mask[1, -2:] = 0
    drawn = np.random.default_rng(0).standard_normal((*mask.shape, width), np.float32)
    return {"encoder_hidden_states": drawn, "encoder_attention_mask": mask}
