"""Text. IR has tensors of strings but no operators on them. n-grams of numbers (TfIdfVectorizer)
are counted with comparisons."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from bridge.neutral.arrays import zeros
from bridge.neutral.types import F32, STRING
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes

FAR = (1 << 31) - 1

MOST_SKIPPED = 1000
"""The limit of skipped words, because each number of skipped words needs separate comparisons."""


@legalizes("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", target="ir")
def strings(b: Builder, node: Node) -> NoReturn:
    """Refuses RegexFullMatch-20, StringConcat-20, StringNormalizer-10 and StringSplit-20, because
    IR has no operator on strings."""
    raise Refused("OpenVINO IR has no operators on strings; treat the text before the model")


@legalizes("StringTensorPack", "StringTensorUnpack", target="onnx")
def bytes_of_strings(b: Builder, node: Node) -> NoReturn:
    """Refuses StringTensorPack-15 and StringTensorUnpack-15, because ONNX has no operator on the
    bytes of strings."""
    raise Refused(
        "ONNX has no operator on the bytes of strings; treat the text before the model, and cut it "
        "behind this part (`outputs`) or convert the model that takes the tokens"
    )


@legalizes("TfIdfVectorizer", target="ir")
def tf_idf_vectorizer(b: Builder, node: Node) -> Result:
    """TfIdfVectorizer-9: the weighted count of each n-gram of the pool in each row, at the index of
    the n-gram."""
    x = node.operand(0)
    attributes = node.attributes
    if x.element is STRING or attributes.get("pool_strings"):
        raise Refused("OpenVINO IR has no operators on strings; use numbers for the words")
    pool = np.array(attributes.get("pool_int64s") or (), np.int64)
    starts = [*attributes["ngram_counts"], len(pool)]
    _require_grams(attributes, starts)
    counts: list[Value] = []
    for n, (start, end) in enumerate(itertools.pairwise(starts), 1):
        grams = pool[start:end].reshape(-1, n)
        if len(grams):
            wanted = attributes["min_gram_length"] <= n <= attributes["max_gram_length"]
            skips = range(attributes["max_skip_count"] + 1 if n > 1 else 1) if wanted else ()
            counts.append(_count(b, x, grams, skips))
    total = b.concat(-1, *counts)
    mode = attributes["mode"]
    if mode == "IDF":
        total = b.op("Cast", total > 0.0, to=F32)
    indices = np.array(attributes["ngram_indexes"])
    places = zeros((len(indices), int(indices.max()) + 1), np.float32, repr(node))
    weights = attributes.get("weights") if mode != "TF" else None
    places[np.arange(len(indices)), indices] = weights or 1.0
    return b.op("MatMul", total, places)


def _require_grams(attributes: Mapping[str, Any], starts: Sequence[int]) -> None:
    """Raises Refused if the attributes contradict each other. `starts` are the starts of the
    1-grams, the 2-grams and so on in the pool, and its end. Each n-gram has an index and optionally
    a weight."""
    sizes = [end - start for start, end in itertools.pairwise(starts)]
    if starts[0] != 0 or any(size < 0 or size % n for n, size in enumerate(sizes, 1)):
        raise Refused(f"ngram_counts {starts[:-1]} do not divide a pool of {starts[-1]}")
    count = sum(size // n for n, size in enumerate(sizes, 1))
    indices, weights = attributes["ngram_indexes"], attributes.get("weights")
    if len(indices) != count or min(indices, default=0) < 0:
        raise Refused(f"ngram_indexes must be {count} numbers from 0 on")
    if weights and len(weights) != count:
        raise Refused(f"weights must be {count} numbers")
    if not 0 <= attributes["max_skip_count"] <= MOST_SKIPPED:
        raise Refused(f"max_skip_count must be 0 to {MOST_SKIPPED}")


def _count(b: Builder, x: Value, grams: np.ndarray, skips: range | tuple[()]) -> Value:
    """The counts [..., len(grams)] of n-grams in rows [..., length]. A skip is the number of words
    to leave out between two words of an n-gram."""
    n = grams.shape[1]
    # The axis counts from the front if possible, because some runtimes cannot reduce an empty
    # tensor along -2.
    words_axis = b.constant([-2 if x.rank is None else x.rank - 1])
    first = b.unsqueeze(b.cut(x, -1, 0, 1), -1)
    sums = b.op("Cast", first, to=F32) * np.zeros(len(grams), np.float32)
    result = b.op("ReduceSum", sums, words_axis, keepdims=False)
    for skip in skips:
        step = skip + 1
        length = x.shape[-1] if x.shape else None
        if isinstance(length, int) and length <= (n - 1) * step:
            break
        ends = [-left if left else FAR for left in range((n - 1) * step, -1, -step)]
        words = (b.cut(x, -1, j * step, end) for j, end in enumerate(ends))
        hits = (b.unsqueeze(word, -1).equal(grams[:, j]) for j, word in enumerate(words))
        matches = b.op("Cast", b.fold("And", hits), to=F32)
        result += b.op("ReduceSum", matches, words_axis, keepdims=False)
    return result
