"""Decoders as onnxruntime-genai's model builder writes them, with small random weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, GROUPS, SIZE, WORDS = 4, 2, 16, 96
WIDTH, INNER, PLACES = HEADS * SIZE, 112, 64


@dataclass(frozen=True)
class Decoder:
    """The properties of a decoder.

    `bits` is the width of MatMulNBits' weights, 0 for MatMul. A `packed` projection gives queries,
    keys and values at once. `long` selects one of two tables of rotary embeddings by the length.
    `window` is the number of keys that a query reads, with a cache of this size or more. The cache
    may be of `stored` bits. The inputs may name the size of its heads as a symbol, `named`.
    """

    layers: int = 2
    bits: int = 0
    packed: bool = True
    long: bool = False
    opset: int = 21
    window: int = -1
    stored: int = 0
    named: bool = False

    @property
    def cache(self) -> tuple[int, int]:
        """The element type of the caches, and the size of their heads."""
        kinds = {0: TensorProto.FLOAT, 8: TensorProto.INT8, 4: TensorProto.UINT8}
        return kinds[self.stored], SIZE // 2 if self.stored == 4 else SIZE

    def model(self) -> onnx.ModelProto:
        return _Writer(self).write()


class _Writer:
    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.rng = np.random.default_rng(5)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, op: str, name: str, *inputs: str, outputs: int | list[str] = 1, **more) -> str:
        made = (
            [f"{name}/output_{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        )
        self.nodes.append(helper.make_node(op, list(inputs), made, name=name, **more))
        return made[0]

    def constant(self, name: str, values: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def random(self, name: str, *shape: int) -> str:
        return self.constant(name, self.rng.normal(0, 0.1, shape).astype(np.float32))

    def product(self, name: str, x: str, inner: int, outer: int) -> str:
        bits, block = self.decoder.bits, 32
        if not bits:
            return self.node("MatMul", f"{name}/MatMul", x, self.random(f"{name}.w", inner, outer))
        blocks = -(-inner // block)
        packed = self.rng.integers(0, 256, (outer, blocks, block * bits // 8)).astype(np.uint8)
        scales = self.rng.uniform(0.005, 0.02, outer * blocks).astype(np.float32)
        zeros = self.rng.integers(0, 256, outer * -(-blocks * bits // 8)).astype(np.uint8)
        return self.node(
            "MatMulNBits", f"{name}/MatMul_Q{bits}", x, self.constant(f"{name}.q", packed),
            self.constant(f"{name}.s", scales), self.constant(f"{name}.z", zeros),
            K=inner, N=outer, bits=bits, block_size=block, accuracy_level=0,
            domain="com.microsoft",
        )  # fmt: skip

    def embedding(self, root: str) -> str:
        bits, blocks = self.decoder.bits, WIDTH // 32
        if not bits:
            words = self.random("model.embed_tokens.weight", WORDS, WIDTH)
            return self.node("Gather", f"{root}/Gather", words, "input_ids")
        packed = self.rng.integers(0, 256, (WORDS, WIDTH * bits // 8)).astype(np.uint8)
        scales = self.rng.uniform(0.005, 0.02, (WORDS, blocks)).astype(np.float32)
        return self.node(
            "GatherBlockQuantized", f"{root}/Gather_Q{bits}", self.constant("embed.q", packed),
            "input_ids", self.constant("embed.s", scales), bits=bits, block_size=32, gather_axis=0,
            quantize_axis=1, domain="com.microsoft",
        )  # fmt: skip

    def mask(self) -> list[str]:
        """Lengths of the sequences less one, and the whole length."""
        root = "/model/attn_mask_reformat"
        one = self.constant("one", np.array([1], np.int64))
        first = self.constant("first", np.array(1, np.int64))
        total = self.node("ReduceSum", f"{root}/ReduceSum", "attention_mask", one, keepdims=0)
        less = self.node("Sub", f"{root}/Sub", total, one)
        lengths = self.node("Cast", f"{root}/Sub/Cast", less, to=TensorProto.INT32)
        shape = self.node("Shape", f"{root}/Shape", "attention_mask")
        whole = self.node("Gather", f"{root}/Gather", shape, first, axis=0)
        return [lengths, self.node("Cast", f"{root}/Gather/Cast", whole, to=TensorProto.INT32)]

    def tables(self) -> list[str]:
        """The cosines and sines of rotary embeddings."""
        if not self.decoder.long:
            return [self.constant(f"{name}_cache", table) for name, table in _rotary(1.0).items()]
        branches = [
            helper.make_graph(
                [
                    helper.make_node(
                        "Constant", [], [f"{name}_{kind}"], value=numpy_helper.from_array(table)
                    )
                    for name, table in _rotary(scale).items()
                ],
                kind,
                [],
                [
                    helper.make_tensor_value_info(f"{name}_{kind}", TensorProto.FLOAT, table.shape)
                    for name, table in _rotary(scale).items()
                ],
            )
            for kind, scale in (("large", 4.0), ("small", 1.0))
        ]
        limit = self.constant("limit", np.array(12, np.int32))
        far = self.node("Greater", "/model/rotemb/Greater", self.lengths[1], limit)
        names = ["cos_cache", "sin_cache"]
        self.node(
            "If", "/model/rotemb/If", far, outputs=names, then_branch=branches[0],
            else_branch=branches[1],
        )  # fmt: skip
        return names

    def layer(self, i: int, x: str) -> str:
        """A layer: attention and the projections after it."""
        root, wide = f"/model/layers.{i}", GROUPS * SIZE
        if self.decoder.packed:
            both = self.product(f"{root}/attn/qkv_proj", x, WIDTH, WIDTH + 2 * wide)
            heads = [both, "", ""]
        else:
            widths = {"q": WIDTH, "k": wide, "v": wide}
            heads = [self.product(f"{root}/attn/{n}_proj", x, WIDTH, w) for n, w in widths.items()]
        name = f"{root}/attn/GroupQueryAttention"
        more, scales = {}, []
        if self.decoder.stored:
            kinds = dict.fromkeys(("k_quant_type", "v_quant_type"), "PER_CHANNEL")
            more = {**kinds, "kv_cache_bit_width": self.decoder.stored}
            scales = ["", "", ""]
            for kind in ("k", "v"):
                table = self.rng.uniform(0.5, 1, (1, GROUPS, 1, SIZE)) / (1 << self.decoder.stored)
                table = (4 * table).astype(np.float32)
                scales.append(self.constant(f"model.layers.{i}.{kind}_scale", table))
        if self.decoder.window > 0:
            more["sliding_window_cache"] = 1
        own = [f"{name}/output_0", f"present.{i}.key", f"present.{i}.value"]
        past = [f"past_key_values.{i}.key", f"past_key_values.{i}.value"]
        y = self.node(
            "GroupQueryAttention", name, *heads, *past, *self.lengths, *self.rotary,
            *(scales or ["", ""]),
            outputs=own, num_heads=HEADS, kv_num_heads=GROUPS, scale=SIZE**-0.5, softcap=0.0,
            local_window_size=self.decoder.window, do_rotary=1, rotary_interleaved=0,
            domain="com.microsoft", **more,
        )  # fmt: skip
        x = self.skip(
            f"{root}/post_attention_layernorm", self.product(f"{root}/attn/o", y, WIDTH, WIDTH)
        )
        gate = self.product(f"{root}/mlp/gate_proj", x, WIDTH, INNER)
        up = self.product(f"{root}/mlp/up_proj", x, WIDTH, INNER)
        opened = self.node("Sigmoid", f"{root}/mlp/act_fn/Sigmoid", gate)
        opened = self.node("Mul", f"{root}/mlp/act_fn/Mul", gate, opened)
        both = self.node("Mul", f"{root}/mlp/Mul", opened, up)
        y = self.product(f"{root}/mlp/down_proj", both, INNER, WIDTH)
        return self.skip(f"{root}/next_layernorm", y, last=i + 1 == self.decoder.layers)

    def skip(self, root: str, y: str, last: bool = False) -> str:
        """Adds `y` to the residual and normalises the sum; the sum is the next residual."""
        name = f"{root}/SkipLayerNorm"
        outputs = [f"{name}/output_0"] if last else [f"{name}/output_0", "", "", f"{name}/output_3"]
        made = self.node(
            "SkipSimplifiedLayerNormalization", name, self.root, y, self.random(f"{root}.w", WIDTH),
            outputs=outputs, epsilon=1e-5, domain="com.microsoft",
        )  # fmt: skip
        self.root = outputs[-1]
        return made

    def write(self) -> onnx.ModelProto:
        self.lengths = self.mask()
        self.rotary = self.tables()
        self.root = self.embedding("/model/embed_tokens")
        scale = self.random("model.layers.0.input_layernorm.weight", WIDTH)
        x = self.node(
            "SimplifiedLayerNormalization", "/model/layers.0/input_layernorm/LayerNorm", self.root,
            scale, axis=-1, epsilon=1e-5, stash_type=1,
        )  # fmt: skip
        for i in range(self.decoder.layers):
            x = self.layer(i, x)
        y = self.product("/lm_head", x, WIDTH, WORDS)
        self.nodes[-1].output[0] = y = "logits"
        ints, floats = TensorProto.INT64, TensorProto.FLOAT
        inputs = [
            helper.make_tensor_value_info("input_ids", ints, ["batch_size", "sequence_length"]),
            helper.make_tensor_value_info(
                "attention_mask", ints, ["batch_size", "total_sequence_length"]
            ),
        ]
        outputs = [
            helper.make_tensor_value_info(y, floats, ["batch_size", "sequence_length", WORDS])
        ]
        for i in range(self.decoder.layers):
            cache, size = self.decoder.cache
            size = "kv_cache_dim" if self.decoder.named else size
            for kind in ("key", "value"):
                for name, values, length in (
                    ("past_key_values", inputs, "past_sequence_length"),
                    ("present", outputs, "total_sequence_length"),
                ):
                    shape = ["batch_size", GROUPS, length, size]
                    values.append(helper.make_tensor_value_info(f"{name}.{i}.{kind}", cache, shape))
        return helper.make_model(
            helper.make_graph(self.nodes, "main_graph", inputs, outputs, self.constants),
            producer_name="onnxruntime-genai", ir_version=10,
            opset_imports=[
                helper.make_opsetid("", self.decoder.opset), helper.make_opsetid("com.microsoft", 1)
            ],
        )  # fmt: skip


def feed(
    decoder: Decoder, length: int, past: int, batch: int = 1, held: int | None = None
) -> dict[str, np.ndarray]:
    """Inputs of a decoder after `past` words of each sequence. A window's cache holds `held`."""
    rng = np.random.default_rng(length + past)
    result = {
        "input_ids": rng.integers(0, WORDS, (batch, length)),
        "attention_mask": np.ones((batch, past + length), np.int64),
    }
    element, size = decoder.cache
    for i in range(decoder.layers):
        for kind in ("key", "value"):
            cache = rng.normal(size=(batch, GROUPS, past if held is None else held, size))
            cache = (cache * (20 if decoder.stored else 1)).astype(np.float32)
            cache = cache.astype(helper.tensor_dtype_to_np_dtype(element))
            result[f"past_key_values.{i}.{kind}"] = cache
    return result


def _rotary(scale: float) -> dict[str, np.ndarray]:
    angles = np.outer(np.arange(PLACES) / scale, 10000.0 ** (-np.arange(SIZE // 2) * 2 / SIZE))
    return {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
