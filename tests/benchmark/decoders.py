"""`python -m tests.benchmark --decoders`: decoders of onnxruntime-genai against PyTorch's.

The same decoder, with the same weights, comes to OpenVINO in two ways. onnxruntime-genai's ONNX
file goes through Bridge; a PyTorch module goes through OpenVINO's PyTorch frontend. Both keep their
caches as inputs and outputs, or as variables, which OpenVINO's own transformation makes for the
module. The calls compute one word behind 40 others, and a text of 40 words. They run in turn on one
thread; times are medians of processor time. The numbers are compared.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import openvino
import torch
from onnx import numpy_helper
from openvino import opset13
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu

import bridge
from tests.support.genai import GROUPS, HEADS, SIZE, WORDS, Decoder
from tests.support.running import EXACT

HEADER = "| decoder | caches | a word | a text |\n| --- | --- | ---: | ---: |"
DECODERS = {"2 layers": Decoder(), "8 layers": Decoder(layers=8)}
LENGTH = 40
CACHES = [(i, kind) for i in range(64) for kind in ("key", "value")]


class Module(nn.Module):
    """The decoder as transformers writes a Llama: rotary embeddings in halves, keys repeated for
    the heads that share them."""

    def __init__(self, model: onnx.ModelProto, layers: int) -> None:
        super().__init__()
        self.layers = layers
        for tensor in model.graph.initializer:
            values = torch.tensor(numpy_helper.to_array(tensor))
            self.register_buffer(tensor.name.replace(".", "_"), values)

    def of(self, name: str) -> torch.Tensor:
        return self.get_buffer(name.replace(".", "_"))

    def normalized(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return self.of(name) * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))

    def forward(self, words: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor):
        new, held = words.shape[1], past[0].shape[2]
        places = mask.cumsum(-1)[:, -new:] - 1
        turn = [self.of(f"{x}_cache")[places].repeat(1, 1, 2)[:, None] for x in ("cos", "sin")]
        seen = torch.arange(held + new) <= torch.arange(new)[:, None] + held
        seen = seen[None, None] & mask[:, None, None].bool()
        bias = torch.where(seen, 0.0, torch.finfo(torch.float32).min)
        x, present = self.of("model.embed_tokens.weight")[words], []
        y = self.normalized(x, "model.layers.0.input_layernorm.weight")
        for i in range(self.layers):
            root = f"/model/layers.{i}"
            heads = (y @ self.of(f"{root}/attn/qkv_proj.w")).unflatten(-1, (-1, SIZE))
            q, k, v = heads.transpose(1, 2).split([HEADS, GROUPS, GROUPS], 1)
            q, k = (_turned(z, *turn) for z in (q, k))
            k, v = (torch.cat(pair, 2) for pair in ((past[2 * i], k), (past[2 * i + 1], v)))
            present += [k, v]
            y = scaled_dot_product_attention(q, _repeated(k), _repeated(v), bias, scale=SIZE**-0.5)
            x = x + y.transpose(1, 2).flatten(2) @ self.of(f"{root}/attn/o.w")
            y = self.normalized(x, f"{root}/post_attention_layernorm.w")
            gate, up = (y @ self.of(f"{root}/mlp/{side}_proj.w") for side in ("gate", "up"))
            x = x + (silu(gate) * up) @ self.of(f"{root}/mlp/down_proj.w")
            y = self.normalized(x, f"{root}/next_layernorm.w")
        return y @ self.of("/lm_head.w"), *present


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _repeated(x: torch.Tensor) -> torch.Tensor:
    batch, _, length, _ = x.shape
    many = x[:, :, None].expand(batch, GROUPS, HEADS // GROUPS, length, SIZE)
    return many.reshape(batch, HEADS, length, SIZE)


def through_pytorch(model: onnx.ModelProto, layers: int) -> openvino.Model:
    """OpenVINO's IR of the module, with the names of onnxruntime-genai's file."""
    caches = CACHES[: 2 * layers]
    words, mask = torch.ones((2, 3), dtype=torch.int64), torch.ones((2, 8), dtype=torch.int64)
    past = [torch.zeros((2, GROUPS, 5, SIZE)) for _ in caches]
    shapes = [openvino.PartialShape([-1, -1])] * 2
    shapes += [openvino.PartialShape([-1, GROUPS, -1, SIZE])] * len(caches)
    made = openvino.convert_model(
        Module(model, layers).eval(), example_input=(words, mask, *past), input=shapes
    )
    names = ["input_ids", "attention_mask", *(f"past_key_values.{i}.{k}" for i, k in caches)]
    for port, name in zip(made.inputs, names, strict=True):
        port.get_tensor().set_names({name})
    for port, name in zip(
        made.outputs, ["logits", *(f"present.{i}.{k}" for i, k in caches)], strict=True
    ):
        port.get_tensor().set_names({name})
    return made


def stateful(model: openvino.Model, layers: int) -> openvino.Model:
    """The model with variables, whose sequences `beam_idx` selects, as optimum-intel writes it."""
    from openvino._offline_transformations import apply_make_stateful_transformation

    beams = opset13.parameter([-1], np.int32, name="beam_idx")
    beams.output(0).get_tensor().add_names({"beam_idx"})
    model.add_parameters([beams])
    for port in list(model.inputs):
        if port.any_name.startswith("past"):
            users = list(port.get_target_inputs())
            chosen = opset13.gather(port.get_node(), beams, opset13.constant(0))
            for user in users:
                user.replace_source_output(chosen.output(0))
    model.validate_nodes_and_infer_types()
    pairs = {f"past_key_values.{i}.{k}": f"present.{i}.{k}" for i, k in CACHES[: 2 * layers]}
    apply_make_stateful_transformation(model, pairs)
    words = next(port.get_node() for port in model.inputs if port.any_name == "input_ids")
    batch = opset13.gather(opset13.shape_of(words), opset13.constant([0]), opset13.constant(0))
    empty = opset13.concat([batch, opset13.constant(np.array([GROUPS, 0, SIZE]))], 0)
    for node in model.get_ops():
        if node.get_type_name() == "ReadValue":
            zeros = opset13.broadcast(opset13.constant(np.float32(0)), empty)
            node.set_arguments([zeros.output(0)])
    model.validate_nodes_and_infer_types()
    return model


def compiled(model: Any) -> openvino.InferRequest:
    settings = {**EXACT, "INFERENCE_NUM_THREADS": 1}
    return openvino.Core().compile_model(model, "CPU", settings).create_infer_request()


def feed(new: int, past: int, layers: int, variables: bool) -> dict[str, np.ndarray]:
    """Inputs of a call with this many new words behind others."""
    rng = np.random.default_rng(past)
    given = {
        "input_ids": rng.integers(0, WORDS, (1, new)),
        "attention_mask": np.ones((1, past + new), np.int64),
    }
    if variables:
        places = np.arange(past, past + new)[None]
        return {**given, "position_ids": places, "beam_idx": np.zeros(1, np.int32)}
    caches = {
        f"past_key_values.{i}.{kind}": rng.normal(size=(1, GROUPS, past, SIZE)).astype(np.float32)
        for i, kind in CACHES[: 2 * layers]
    }
    return {**given, **caches}


def call(request: openvino.InferRequest, given: dict[str, np.ndarray]) -> float:
    """The processor time of one call."""
    for port in request.model_inputs:
        request.set_tensor(port, openvino.Tensor(given[port.any_name]))
    start = time.process_time()
    request.infer()
    return time.process_time() - start


def ratios(pair: list[openvino.InferRequest], layers: int, variables: bool, seconds: float):
    """The ratios for a word and for a text: the first request's time against the second's."""
    word, text = (feed(new, past, layers, variables) for new, past in ((1, LENGTH), (LENGTH, 0)))
    taken: dict[tuple[int, bool], list[float]] = {}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for place, request in enumerate(pair):
            if variables:
                request.reset_state()
            taken.setdefault((place, False), []).append(call(request, text))
            taken.setdefault((place, True), []).append(call(request, word))
            if variables:  # The first word moves the caches to larger memory.
                taken[place, True][-1] = call(request, feed(1, LENGTH + 1, layers, True))
        logits = [request.get_tensor("logits").data for request in pair]
        np.testing.assert_allclose(*logits, rtol=1e-3, atol=1e-5)
    times = {key: statistics.median(found) for key, found in taken.items()}
    return [times[0, one] / times[1, one] for one in (True, False)]


def main(seconds: float) -> None:
    """Prints the table."""
    print(HEADER, flush=True)
    with TemporaryDirectory() as folder:
        path, ir = Path(folder) / "model.onnx", Path(folder) / "model.xml"
        for name, decoder in DECODERS.items():
            model = decoder.model()
            onnx.save(model, path)
            for variables in (False, True):
                bridge.convert(path, ir, stateful=variables, beam_idx=variables)
                other = through_pytorch(model, decoder.layers)
                if variables:
                    other = stateful(other, decoder.layers)
                pair = [compiled(ir), compiled(other)]
                cells = ratios(pair, decoder.layers, variables, seconds)
                where = "variables" if variables else "inputs"
                print(f"| {name} | {where} | {' | '.join(f'{x:.2f}' for x in cells)} |", flush=True)
