"""Maps at the boundary of a model: IR has no maps, so they become rows of their values.

ONNX's maps come from ZipMap at the end of a classifier. The output is its tensor, under the map's
name, and the metadata keeps the keys.
"""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, names_of_outputs, producer_of
from bridge.passes.context import Context
from bridge.records.boundary import MAP_KEYS, LabelRecord

ZIP_MAP = "ai.onnx.ml::ZipMap"

LOWERED = (ZIP_MAP,)
"""The operators on maps that become something else."""


def lower_maps(model: Model, context: Context) -> bool:
    """Makes tensors, in place, of the maps that are outputs of the model, and records their keys;
    returns whether there were any. `legalize` refuses other ZipMaps."""
    graph = model.graph
    record = LabelRecord({}, {})
    names = names_of_outputs(graph)
    for index, (value, name) in enumerate(zip(graph.outputs, names, strict=True)):
        node = producer_of(value.behind("Identity"), ZIP_MAP)
        if node is None:
            continue
        row = node.operand(0)
        attributes = node.attributes
        keys = attributes.get("classlabels_strings") or attributes.get("classlabels_int64s") or ()
        if not keys or len(set(keys)) < len(keys):
            continue
        record.outputs[name] = tuple(keys)
        graph.outputs[index] = Builder(graph.nodes, node.name, context.target).op("Identity", row)
        graph.outputs[index].names = [name]
    if record:
        MAP_KEYS.write(model.metadata, record)
    return bool(record)


def restore_maps(model: Model, context: Context) -> None:
    """Gives the model back, in place, the maps among its outputs that its metadata records."""
    record = MAP_KEYS.take(model.metadata)
    graph = model.graph
    for name, keys in record.outputs.items() if record else ():
        if name not in graph.output_names:
            raise MAP_KEYS.names_nothing(name)
        index = graph.output_names.index(name)
        kind = "strings" if isinstance(keys[0], str) else "int64s"
        b = Builder(graph.nodes, name, context.target)
        row = graph.outputs[index]
        row.names = [other for other in row.names if other != name]
        graph.outputs[index] = b.op(ZIP_MAP, row, **{f"classlabels_{kind}": keys})
        graph.outputs[index].names = [name]
