"""The types that the schemas of ONNX's operators allow in each operator set. Rules check them
before they write an operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from bridge.neutral.graph import Value
from bridge.neutral.types import BY_ONNX, Element, OptionalType, SequenceType, TensorType, Type
from bridge.operators.schemas import NEWEST, schema_of
from bridge.vocabulary import has_trait


@dataclass(eq=False)
class TypeSignature:
    """The type variables of an operator's inputs and outputs, in order; inputs also have `names`.
    If `variadic`, the last variable repeats, with separate types if `mixed`. `allowed` has the
    allowed types of each variable, as the schemas spell them."""

    names: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    variadic_inputs: bool
    variadic_outputs: bool
    mixed: bool
    allowed: dict[str, frozenset[str]]

    def input(self, index: int) -> str | None:
        """The variable of input `index`; None if the schema has no such input."""
        return _at(self.inputs, index, self.variadic_inputs)

    def output(self, index: int) -> str | None:
        """The variable of output `index`; None if the schema has no such output."""
        return _at(self.outputs, index, self.variadic_outputs)

    def name(self, index: int) -> str:
        """An input for a message: its name, or its place if the last name repeats."""
        last = len(self.names) - self.variadic_inputs
        return self.names[index] if index < last else f"input {index}"


def _at(variables: tuple[str, ...], index: int, variadic: bool) -> str | None:
    if index < len(variables):
        return variables[index]
    return variables[-1] if variadic and variables else None


@cache
def type_signature(type: str, opset: int, domain: str = "") -> TypeSignature | None:
    """The types of ONNX's operator `type` in operator set `opset`; None if the operator set lacks
    it."""
    schema = schema_of(type, opset, domain)
    if schema is None:
        return None
    inputs = tuple(formal.type_str for formal in schema.inputs)
    outputs = tuple(formal.type_str for formal in schema.outputs)
    # If an input or output has the same type in all nodes, the schema has this type in place of a
    # variable.
    allowed = {variable: frozenset((variable,)) for variable in (*inputs, *outputs)}
    allowed |= {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}
    return TypeSignature(
        tuple(formal.name for formal in schema.inputs),
        inputs,
        outputs,
        schema.max_input > len(inputs),
        schema.max_output > len(outputs),
        not all(formal.is_homogeneous for formal in schema.inputs),
        allowed,
    )


def schema_type(type: Type) -> str | None:
    """A type in the schemas' spelling, for example `seq(tensor(float))`. None if its element is
    unknown or not an element type of ONNX."""
    match type:
        case TensorType(element=element):
            return None if element is None else _schema_types().get(element)
        case SequenceType(item=item):
            inner = schema_type(item)
            return f"seq({inner})" if inner else None
        case OptionalType(item=item):
            inner = schema_type(item)
            return f"optional({inner})" if inner else None
    return None


@cache
def _schema_types() -> dict[Element, str]:
    """The schemas' names of tensor types, by element. If the installed onnx lacks a type, no schema
    names it, and the type has a name of Bridge."""
    import onnx

    names = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
    return {e: f"tensor({names.get(number, e.name)})" for number, e in BY_ONNX.items()}


def disallowed(
    type: str, opset: int, inputs: Sequence[Value | None], outputs: Sequence[Value]
) -> str:
    """The reason that operator set `opset` does not allow a node with these inputs and outputs. The
    reason is "" if it allows the node, as far as the types are known."""
    taken, given = (tuple([v and schema_type(v.type) for v in some]) for some in (inputs, outputs))
    return _disallowed(type, opset, taken, given)


@cache
def _disallowed(
    type: str, opset: int, inputs: tuple[str | None, ...], outputs: tuple[str | None, ...]
) -> str:
    """The same by types, in the schemas' spelling."""
    signature = type_signature(type, opset)
    if signature is None:
        return ""
    ends = (("takes", inputs, signature.input), ("gives", outputs, signature.output))
    for kind, types, variable_of in ends:
        for index, given in enumerate(types):
            variable = variable_of(index)
            if variable is None or given is None:
                continue
            if given not in signature.allowed[variable]:
                since = _since(type, opset, index, kind == "takes", given)
                return f"{type} {kind} no {given} {since}"
    return _untied(type, signature, inputs)


def _untied(type: str, signature: TypeSignature, inputs: tuple[str | None, ...]) -> str:
    """Two inputs of one type variable that have different types; "" if there are none."""
    firsts: dict[str, int] = {}
    for index, given in enumerate(() if signature.mixed else inputs):
        variable = signature.input(index)
        if variable is None or given is None:
            continue
        first = firsts.setdefault(variable, index)
        if inputs[first] != given:
            one, other = signature.name(first), signature.name(index)
            return (
                f"its inputs {one} and {other} are {inputs[first]} and {given}; {type} takes both "
                "of one type, so a Cast in front of one would mend it"
            )
    return ""


@cache
def ill_typed(type: str, domain: str, inputs: tuple[str | None, ...]) -> str:
    """Why no operator set allows a node with inputs of these types, as the schemas spell them; ""
    if one may. An input is not refused for a width that the installed onnx does not know."""
    signature = type_signature(type, NEWEST, domain)
    if signature is None:
        return ""
    for index, given in enumerate(inputs):
        variable = signature.input(index)
        if variable is None or given is None:
            continue
        allowed = signature.allowed[variable]
        known = _kind(given) in map(_kind, allowed)
        if not known and not _was_allowed(type, domain, index, given):
            few = " or ".join(sorted(allowed)) if len(allowed) < 4 else f"no {_kind(given)}"
            return (
                f"its input {signature.name(index)} is {given}; {type} takes {few} there, so a "
                "Cast in front of it would mend it"
            )
    return _untied(type, signature, inputs)


def _was_allowed(type: str, domain: str, index: int, given: str) -> bool:
    """Whether an operator set before 28, which takes types back, allows the type at this input."""
    earlier = (type_signature(type, opset, domain) for opset in range(1, 28))
    named = ((each, each.input(index)) for each in earlier if each is not None)
    return any(variable and given in each.allowed[variable] for each, variable in named)


@cache
def untied(op: str, types: tuple[str | None, ...]) -> str:
    """Why an IR cannot have a layer whose inputs have these types; "" if it may. Inputs of integers
    that ONNX alone ties are None."""
    signature = type_signature(op, NEWEST)
    variables = () if signature is None else signature.inputs
    if has_trait(op, "broadcasts") and len({*variables}) == len(variables):
        # Of IR alone, or with a type for each input in ONNX (Pow).
        signature = TypeSignature(("",), ("T",), (), True, False, False, {})
    return "" if signature is None else _untied(op, signature, types)


def _kind(spelled: str) -> str:
    """The kind of a schema's type: its name without the width, and without the sign of integers."""
    inner = spelled.rpartition("(")[2].rstrip(")")
    kind = next((kind for kind in ("float", "int") if kind in inner), inner)
    return spelled.replace(inner, "float" if inner == "double" else kind)


def _since(type: str, opset: int, index: int, is_input: bool, given: str) -> str:
    """The first operator set that allows the type at this input or output, as text."""
    import onnx.defs

    for later in range(opset + 1, onnx.defs.onnx_opset_version() + 1):
        signature = type_signature(type, later)
        if signature is None:
            continue
        variable = signature.input(index) if is_input else signature.output(index)
        if variable is not None and given in signature.allowed[variable]:
            return f"before operator set {later}"
    return f"in ONNX, as far as the installed onnx {onnx.__version__} knows"
