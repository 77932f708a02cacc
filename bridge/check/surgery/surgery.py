"""Changes to a copy of a model, which are named in the nodes and values of the model itself."""

from collections.abc import Collection, Mapping
from functools import cached_property

from bridge.check.surgery.bringing import bring_out
from bridge.check.surgery.sites import Site, graphs_of, sites_of
from bridge.check.surgery.situations import Dependences, Situation
from bridge.check.surgery.switches import add_switches
from bridge.check.surgery.watching import watch
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Graph, Model, Node, Value


class Surgery:
    """A copy of a model (`model`), and what is changed in it. The model itself stays as it is.

    >>> surgery = Surgery(model)
    >>> surgery.switch([3])  # the site of this index, see `sites_of`
    >>> surgery.watch()
    >>> bridge.save(surgery.model, "watched.onnx")
    """

    def __init__(self, model: Model) -> None:
        self._original = model
        self.model = clone_model(model)
        self._graphs = {
            mine: (way, copy)
            for (_, mine), (way, copy) in zip(
                graphs_of(model), list(graphs_of(self.model)), strict=True
            )
        }
        self._nodes = {
            node: twin
            for mine, (_, copy) in self._graphs.items()
            for node, twin in zip(mine.nodes, list(copy.nodes), strict=True)
        }

    def bring_out(
        self, graph: Graph, values: Mapping[str, Value], flat: Collection[str] = ()
    ) -> None:
        """Makes values of a graph of the model, however deep in Ifs and Loops, outputs of these
        names. `bringing.brought_out` has them in the results of a run. The innermost Loop around
        them counts its iterations (`bringing.COUNT`), and each Loop takes the number of its last
        (`bringing.last`). Those of open rank, and those of the names `flat`, come out as elements
        and shape."""
        way, copy = self._graphs[graph]
        # Switches follow the inputs that the model has.
        inputs = dict(zip(graph.inputs, copy.inputs, strict=False))
        named = {}
        for name, value in values.items():
            maker = value.producer
            if maker is None:
                named[name] = inputs[value]
            else:
                named[name] = self._nodes[maker].outputs[maker.outputs.index(value)]
        bring_out(self.model, way, named, flat)

    def switch(self, forced: Collection[int], sites: Mapping[Node, Site] | None = None) -> None:
        """Gives the sites of these indices an i32 scalar input each (`Site.switch`): `OWN` leaves
        the If or Loop to itself, another number is the outcome that it is to have. `sites` are
        those of another model that nodes of this one stand for, if not the model's own."""
        sites = self._sites if sites is None else sites
        some = {self._nodes[n]: site for n, site in sites.items() if site.index in forced}
        add_switches(self.model.graph, some)

    def watch(
        self, sites: Mapping[Node, Site] | None = None, sources: Dependences | None = None
    ) -> list[Situation]:
        """Gives the model an output that says which branches ran, and how many iterations each
        Loop ran at most, and with `sources` one for situations, which are the answer (see
        `watching`). `sites` are those that count, if not all. What is switched has to be switched
        before."""
        sites = self._sites if sites is None else sites
        mine = {self._nodes[node]: site for node, site in sites.items()}
        return watch(self.model.graph, mine, sources)

    @cached_property
    def _sites(self) -> dict[Node, Site]:
        return sites_of(self._original)
