"""A language model of few bits. Its caches become variables. Its weights keep their size in IR and
in the ONNX that comes back. Both compute the same numbers, token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import openvino
import pytest

import bridge
from tests.support.running import EXACT, OnnxRuntime

LAYERS, HEADS, GROUPS, SIZE, INNER, WORDS, BLOCK = 2, 4, 2, 16, 96, 40, 32
WIDTH = HEADS * SIZE
MATRICES = {
    "q": (WIDTH, WIDTH), "k": (WIDTH, GROUPS * SIZE), "v": (WIDTH, GROUPS * SIZE),
    "o": (WIDTH, WIDTH), "gate": (WIDTH, INNER), "up": (WIDTH, INNER), "down": (INNER, WIDTH),
}  # fmt: skip
CACHES = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
PRODUCTS = LAYERS * len(MATRICES)
FORMS = ("MatMulNBits", "MatMulNBits with zero points", "i4", "u4 with zero points")

NORM = """
    {to}_squares = Pow({x}, two)
    {to}_mean = ReduceMean({to}_squares, last)
    {to}_more = Add({to}_mean, least)
    {to}_root = Sqrt({to}_more)
    {to}_unit = Div({x}, {to}_root)
    {to} = Mul({to}_unit, {to}_scale)
"""
SPLIT = """
    {to}_split = Reshape({to}_flat, split_heads)
    {to}_heads = Transpose<perm=[0, 2, 1, 3]>({to}_split)
"""
TURN = """
    {to}_one = Slice({to}_heads, zero, half, last)
    {to}_other = Slice({to}_heads, half, far, last)
    {to}_minus = Neg({to}_other)
    {to}_swapped = Concat<axis=-1>({to}_minus, {to}_one)
    {to}_cos = Mul({to}_heads, cos)
    {to}_sin = Mul({to}_swapped, sin)
    {to}_turned = Add({to}_cos, {to}_sin)
"""
REPEAT = """
    {to}_group = Unsqueeze({x}, two_axis)
    {to}_groups = Expand({to}_group, repeats)
    {to} = Reshape({to}_groups, all_heads)
"""
BEFORE = """
    x0 = Gather(words, input_ids)
    places = Unsqueeze(position_ids, last)
    places_f = Cast<to=1>(places)
    half_angles = Mul(places_f, frequencies)
    angles = Concat<axis=-1>(half_angles, half_angles)
    angles_of_all = Unsqueeze(angles, one)
    cos = Cos(angles_of_all)
    sin = Sin(angles_of_all)
    total = Shape<start=1, end=2>(attention_mask)
    total_scalar = Squeeze(total)
    keys = Range(zero_scalar, total_scalar, one_scalar)
    queries = Unsqueeze(position_ids, one_and_last)
    before = LessOrEqual(keys, queries)
    asked = Cast<to=9>(attention_mask)
    asked_by_all = Unsqueeze(asked, middle)
    seen = And(before, asked_by_all)
    bias = Where(seen, zero_f, least_f)
"""
CONSTANTS = {
    "two": np.float32(2), "least": np.float32(1e-6), "scale": np.float32(SIZE**-0.5),
    "zero_f": np.float32(0), "least_f": np.float32(-3e38),
    "frequencies": (1e-2 ** (np.arange(SIZE // 2) / (SIZE // 2))).astype(np.float32),
    "last": np.array([-1]), "one": np.array([1]), "zero": np.array([0]),
    "two_axis": np.array([2]), "half": np.array([SIZE // 2]), "far": np.array([1 << 60]),
    "middle": np.array([1, 2]), "one_and_last": np.array([1, -1]),
    "zero_scalar": np.array(0), "one_scalar": np.array(1),
    "split_heads": np.array([0, 0, -1, SIZE]), "joined": np.array([0, 0, WIDTH]),
    "repeats": np.array([1, 1, HEADS // GROUPS, 1, 1]), "all_heads": np.array([0, HEADS, -1, SIZE]),
}  # fmt: skip


Product = Callable[[str, str], str]
"""The text of a product of a value with a matrix, by their names; the result is `…_flat`."""


def layer(i: int, product: Product) -> str:
    """Attention in groups with rotary embedding, and SwiGLU, behind RMS normalisations."""
    return f"""
        {NORM.format(x=f"x{i}", to=f"in{i}")}
        {"".join(product(f"{name}{i}", f"in{i}") for name in "qkv")}
        {"".join(SPLIT.format(to=f"{name}{i}") for name in "qkv")}
        {"".join(TURN.format(to=f"{name}{i}") for name in "qk")}
        "present.{i}.key" = Concat<axis=2>("past_key_values.{i}.key", k{i}_turned)
        "present.{i}.value" = Concat<axis=2>("past_key_values.{i}.value", v{i}_heads)
        {REPEAT.format(x=f'"present.{i}.key"', to=f"all_keys{i}")}
        {REPEAT.format(x=f'"present.{i}.value"', to=f"values{i}")}
        keys{i} = Transpose<perm=[0, 1, 3, 2]>(all_keys{i})
        scores{i} = MatMul(q{i}_turned, keys{i})
        scaled{i} = Mul(scores{i}, scale)
        masked{i} = Add(scaled{i}, bias)
        shares{i} = Softmax<axis=-1>(masked{i})
        mixed{i} = MatMul(shares{i}, values{i})
        back{i} = Transpose<perm=[0, 2, 1, 3]>(mixed{i})
        joined{i} = Reshape(back{i}, joined)
        {product(f"o{i}", f"joined{i}")}
        y{i} = Add(x{i}, o{i}_flat)
        {NORM.format(x=f"y{i}", to=f"mid{i}")}
        {product(f"gate{i}", f"mid{i}")}
        {product(f"up{i}", f"mid{i}")}
        share{i} = Sigmoid(gate{i}_flat)
        silu{i} = Mul(gate{i}_flat, share{i})
        inner{i} = Mul(silu{i}, up{i}_flat)
        {product(f"down{i}", f"inner{i}")}
        x{i + 1} = Add(y{i}, down{i}_flat)
    """


def decoder(form: str) -> onnx.ModelProto:
    """A model with caches in the names that exporters give them."""
    rng = np.random.default_rng(0)
    norms = [f"{part}{i}_scale" for part in ("in", "mid") for i in range(LAYERS)]
    constants: dict[str, np.ndarray] = {
        **CONSTANTS,
        "words": rng.standard_normal((WORDS, WIDTH)).astype(np.float32),
        "head": rng.standard_normal((WIDTH, WORDS)).astype(np.float32),
        **{name: rng.uniform(0.5, 1.5, WIDTH).astype(np.float32) for name in [*norms, "out_scale"]},
    }

    def product(name: str, x: str) -> str:
        weights = matrix(form, *MATRICES[name.rstrip("01")], rng)
        constants.update({f"{name}_{part}": array for part, array in weights.items()})
        inputs = ", ".join(f"{name}_{part}" for part in weights)
        if form.startswith("MatMulNBits"):
            length, columns = MATRICES[name.rstrip("01")]
            sizes = f"K={length}, N={columns}, bits=4, block_size={BLOCK}"
            return f"{name}_flat = com.microsoft.MatMulNBits<{sizes}>({x}, {inputs})\n"
        return f"""
            {name}_matrix = DequantizeLinear<axis=0, block_size={BLOCK}>({inputs})
            {name}_flat = MatMul({x}, {name}_matrix)
        """

    layers = "".join(layer(i, product) for i in range(LAYERS))
    cache = f"float[batch, {GROUPS}, {{}}, {SIZE}]"
    past = ", ".join(f'{cache.format("past")} "past_key_values.{name}"' for name in CACHES)
    present = ", ".join(f'{cache.format("total")} "present.{name}"' for name in CACHES)
    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        decoder (int64[batch, sequence] input_ids, int64[batch, total] attention_mask,
                 int64[batch, sequence] position_ids, {past})
            => (float[batch, sequence, {WORDS}] logits, {present}) {{
            {BEFORE} {layers} {NORM.format(x=f"x{LAYERS}", to="out")}
            logits = MatMul(out, head)
        }}""")
    tensors = (onnx.numpy_helper.from_array(x, name) for name, x in constants.items())
    model.graph.initializer.extend(tensors)
    return model


def matrix(form: str, length: int, columns: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The tensors of a matrix of 4 bits, in the order of inputs, for MatMulNBits or
    DequantizeLinear."""
    blocks = length // BLOCK
    scale = rng.uniform(0.02, 0.04, (blocks, columns)).astype(np.float32)
    zeros = "zero points" in form
    if form.startswith("MatMulNBits"):
        packed = rng.integers(0, 256, (columns, blocks, BLOCK // 2), np.uint8)
        made = {"weight": packed, "scale": scale.reshape(-1)}
        # One byte holds the zero points of two blocks; the unused half of the last byte is 0.
        mask = np.array([255] * (blocks // 2) + [15] * (blocks % 2), np.uint8)
        points = rng.integers(0, 256, (columns, len(mask)), np.uint8) & mask
        return {**made, "zeros": points.reshape(-1)} if zeros else made
    low, type = (0, ml_dtypes.uint4) if zeros else (-8, ml_dtypes.int4)
    made = {"weight": rng.integers(low, low + 16, (length, columns)).astype(type), "scale": scale}
    points = rng.integers(0, 16, (blocks, columns)).astype(type)
    return {**made, "zeros": points} if zeros else made


def calls() -> Iterator[tuple[list[int], dict[str, np.ndarray]]]:
    """A prompt and words behind it: the sequence that each row continues, and the inputs."""
    rng, past = np.random.default_rng(1), 0
    for length, order in ((4, [0, 1]), (1, [1, 0]), (1, [1, 1]), (2, [0, 1])):
        total = past + length
        yield (
            order,
            {
                "input_ids": rng.integers(0, WORDS, (2, length)),
                "attention_mask": np.ones((2, total), np.int64),
                "position_ids": np.tile(np.arange(past, total), (2, 1)),
            },
        )
        past = total


def products(compiled: openvino.CompiledModel) -> list[str]:
    """The types of the weights of matrix products in the compiled model."""
    infos = [op.get_rt_info() for op in compiled.get_runtime_model().get_ops()]
    types = [
        info["runtimePrecision"].astype(str)
        for info in infos
        if info["layerType"].astype(str) == "FullyConnected"
    ]
    return [type for type in types if type != "f32"]


def operators(model: onnx.ModelProto) -> list[str]:
    return sorted(node.op_type for node in model.graph.node)


def weights(model: onnx.ModelProto) -> dict[str, bytes]:
    """The constants of matrix products, by name."""
    return {
        tensor.name: onnx.numpy_helper.to_array(tensor).tobytes()
        for tensor in model.graph.initializer
        if tensor.name.endswith(("_weight", "_zeros", "_scale"))
    }


@pytest.mark.parametrize("form", FORMS)
def test_token_by_token(form: str, tmp_path: Path) -> None:
    onnx.save(decoder(form), tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml", stateful=True, beam_idx=True)
    compiled = openvino.Core().compile_model(tmp_path / "b.xml", "CPU", EXACT)
    assert products(compiled) == [form[0].lower() + "4" if form[0] in "iu" else "u4"] * PRODUCTS
    session, stateful = OnnxRuntime(tmp_path / "a.onnx"), compiled.create_infer_request()
    names = [f"past_key_values.{name}" for name in CACHES]
    for _ in range(2):
        stateful.reset_state()
        past = [np.zeros((2, GROUPS, 0, SIZE), np.float32)] * len(names)
        for order, feed in calls():
            past = [cache[order] for cache in past]
            logits, *past = session.run({**feed, **dict(zip(names, past, strict=True))})
            found = stateful.infer({**feed, "beam_idx": np.array(order, np.int32)})["logits"]
            np.testing.assert_allclose(found, logits, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_the_way_back(form: str, tmp_path: Path) -> None:
    model = decoder(form)
    onnx.save(model, tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml", stateful=True, beam_idx=True)
    bridge.convert(tmp_path / "b.xml", tmp_path / "c.onnx")
    back = onnx.load(tmp_path / "c.onnx")
    assert list(back.graph.input) == list(model.graph.input)
    assert list(back.graph.output) == list(model.graph.output)
    assert operators(back) == operators(model)
    assert weights(back) == weights(model)
    empty = np.zeros((2, GROUPS, 0, SIZE), np.float32)
    feed = {**next(calls())[1], **{f"past_key_values.{name}": empty for name in CACHES}}
    pairs = zip(OnnxRuntime(model).run(feed), OnnxRuntime(back).run(feed), strict=True)
    for wanted, found in pairs:
        np.testing.assert_array_equal(found, wanted)
    bridge.convert(tmp_path / "c.onnx", tmp_path / "d.xml", stateful=True, beam_idx=True)
    bridge.convert(tmp_path / "d.xml", tmp_path / "e.onnx")
    assert (tmp_path / "e.onnx").read_bytes() == (tmp_path / "c.onnx").read_bytes()
