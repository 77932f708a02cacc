"""Attention biases that depend on the distance of words, as onnxruntime fuses them (its
`contrib_ops/cuda/bert`)."""

import numpy as np

from bridge.operators import Builder, Node, Refused, Result, legalizes, required


@legalizes("com.microsoft::RelativePositionBias", target="ir")
def relative_position_bias(b: Builder, node: Node) -> Result:
    """`com.microsoft::RelativePositionBias` (1): T5's bias [1, heads, queries, keys] for the bucket
    of each distance. The numbers of the table are in the order of its transpose."""
    table, queries, keys = required(node, 0, 1, 2)
    match table.shape:
        case int(buckets), int(heads):
            pass
        case _:
            raise Refused("the shape of its bias_table is not known; give `input_shapes`")
    both = bool(node.attributes.get("is_bidirectional", 0))
    most = node.attributes["max_distance"]
    b.room(most)
    # Each distance has its bucket. Distances from `most` on are in the last bucket.
    by_size = b.constant(_buckets(buckets // 2 if both else buckets, most))
    rows, columns = (b.op("Range", 0, b.reshape(n), 1) for n in (queries, keys))
    ahead = columns - b.unsqueeze(rows, 1)
    size = abs(ahead) if both else b.max(-ahead, 0)
    bucket = b.op("Gather", by_size, b.min(size, most), 0)
    if both:
        bucket += b.where(ahead > 0, buckets // 2, 0)
    by_head = b.reshape(table, heads, buckets)
    return b.unsqueeze(b.op("Gather", by_head, bucket, 1), 0)


def _buckets(count: int, most: int) -> np.ndarray:
    """The bucket of each distance up to `most`. Half of the buckets have one distance each, and the
    others have ranges that grow by a factor."""
    exact = count // 2
    sizes = np.arange(1, most + 1, dtype=np.float32)
    steps = np.log(sizes / exact) / np.log(np.float32(most / exact)) * (count - exact)
    large = np.minimum(exact + steps.astype(np.int64), count - 1)
    return np.concatenate([[0], np.where(sizes < exact, sizes.astype(np.int64), large)])
