"""JAX's primitives as ONNX nodes.

Each takes the graph, the inputs (tensors with the axis of the batch in front, or constants without it), the parameters
of the primitive and the shapes of its outputs, and returns the names of the outputs in the graph.
"""

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sentinel_rl.errors import UsageError
from sentinel_rl.export.graph import Graph, Tensor

Form = tuple[tuple[int, ...], np.dtype[Any]]
Operator = Callable[[Graph, Sequence[Any], Mapping[str, Any], Sequence[Form]], list[str]]

OPERATORS: dict[str, Operator] = {}


def _operator(*names: str) -> Callable[[Operator], Operator]:
    def register(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


def _shape_of(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, Tensor) else np.shape(value)


def _name(graph: Graph, value: Any, rank: int) -> str:
    """The name of an operand of elementwise operations; a tensor of lower rank is aligned to the right."""
    if not isinstance(value, Tensor):
        return graph.constant(value)
    if len(value.shape) == rank:
        return value.name
    return _reshape(graph, value.name, (1,) * (rank - len(value.shape)) + value.shape)


def _batched(graph: Graph, value: Any) -> str:
    """The name of an operand that must have the axis of the batch."""
    return value.name if isinstance(value, Tensor) else graph.repeated(value)


def _reshape(graph: Graph, name: str, shape: Sequence[Any]) -> str:
    return graph.one("Reshape", name, graph.ints([-1, *shape]))


def _elementwise(op: str, *, negated: bool = False) -> Operator:
    def apply(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
        rank = len(forms[0][0])
        name = graph.one(op, *(_name(graph, value, rank) for value in inputs))
        return [graph.one("Not", name) if negated else name]

    return apply


for _primitive, _op in {
    "abs": "Abs", "add": "Add", "add_any": "Add", "and": "And", "ceil": "Ceil", "cos": "Cos", "div": "Div",
    "eq": "Equal", "erf": "Erf", "exp": "Exp", "floor": "Floor", "ge": "GreaterOrEqual", "gt": "Greater",
    "le": "LessOrEqual", "log": "Log", "logistic": "Sigmoid", "lt": "Less", "max": "Max", "min": "Min", "mul": "Mul",
    "neg": "Neg", "not": "Not", "or": "Or", "pow": "Pow", "sign": "Sign", "sin": "Sin", "sqrt": "Sqrt", "sub": "Sub",
    "tanh": "Tanh", "xor": "Xor",
}.items():  # fmt: skip
    OPERATORS[_primitive] = _elementwise(_op)
OPERATORS["ne"] = _elementwise("Equal", negated=True)


@_operator("copy", "copy_p", "stop_gradient", "optimization_barrier", "reduce_precision")
def _same(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    return [_batched(graph, value) for value in inputs]


@_operator("log1p")
def _log1p(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    """``log(1 + x)`` with all digits for small x: ``x log(u) / (u - 1)`` with ``u = 1 + x`` as rounded (Kahan)."""
    (x,), one = inputs, graph.constant(forms[0][1].type(1))
    u = graph.one("Add", x.name, one)
    gone, below = graph.one("Equal", u, one), graph.one("Sub", u, one)
    safe = graph.one("Where", gone, one, below)
    quotient = graph.one("Mul", graph.one("Log", u), graph.one("Div", x.name, safe))
    # Of an infinite x the quotient is no number.
    found = graph.one("Where", graph.one("IsInf", x.name), x.name, quotient)
    return [graph.one("Where", gone, x.name, found)]


@_operator("expm1")
def _expm1(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    """``exp(x) - 1`` with all digits for small x: ``(u - 1) x / log(u)`` with ``u = exp(x)`` as rounded (Kahan)."""
    (x,), one, zero = inputs, graph.constant(forms[0][1].type(1)), graph.constant(forms[0][1].type(0))
    u = graph.one("Exp", x.name)
    below = graph.one("Sub", u, one)
    # Far from 0, and where u is 0 or infinite, the difference itself has all digits.
    far = graph.one("Greater", graph.one("Abs", x.name), one)
    near = graph.one("Where", far, zero, x.name)
    near_u = graph.one("Exp", near)
    level = graph.one("Equal", near_u, one)
    log = graph.one("Where", level, one, graph.one("Log", near_u))
    quotient = graph.one("Mul", graph.one("Sub", near_u, one), graph.one("Div", near, log))
    return [graph.one("Where", far, below, graph.one("Where", level, x.name, quotient))]


@_operator("rsqrt")
def _rsqrt(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    return [graph.one("Reciprocal", graph.one("Sqrt", inputs[0].name))]


@_operator("erfc")
def _erfc(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    one = graph.constant(forms[0][1].type(1))
    return [graph.one("Sub", one, graph.one("Erf", inputs[0].name))]


@_operator("square")
def _square(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    return [graph.one("Mul", inputs[0].name, inputs[0].name)]


@_operator("integer_pow")
def _power(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    if parameters["y"] == 2:
        return _square(graph, inputs, parameters, forms)
    return [graph.one("Pow", inputs[0].name, graph.constant(forms[0][1].type(parameters["y"])))]


@_operator("is_finite")
def _finite(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    name = inputs[0].name
    return [graph.one("Not", graph.one("Or", graph.one("IsInf", name), graph.one("IsNaN", name)))]


@_operator("convert_element_type")
def _cast(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    if inputs[0].dtype == forms[0][1]:
        return [inputs[0].name]
    return [graph.one("Cast", inputs[0].name, to=graph.onnx.helper.np_dtype_to_tensor_dtype(forms[0][1]))]


@_operator("select_n")
def _select(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    test, *cases = inputs
    if len(cases) != 2:
        raise UsageError("a choice among more than two arrays cannot be written to ONNX here: use --stablehlo")
    rank = len(forms[0][0])
    if isinstance(test, Tensor) and len(test.shape) < rank:
        # A test of one number chooses whole arrays.
        test = Tensor(_reshape(graph, test.name, (1,) * rank), (1,) * rank, test.dtype)
    off, on = (_name(graph, case, rank) for case in cases)
    return [graph.one("Where", _name(graph, test, rank), on, off)]


@_operator("clamp")
def _clamp(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    low, x, high = (_name(graph, value, len(forms[0][0])) for value in inputs)
    return [graph.one("Min", graph.one("Max", x, low), high)]


def _reduction(op: str, *, axes_as_input: bool = False) -> Operator:
    def apply(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
        axes = [axis + 1 for axis in parameters["axes"]]
        if not axes:
            return [inputs[0].name]
        if axes_as_input:
            return [graph.one(op, inputs[0].name, graph.ints(axes), keepdims=0)]
        return [graph.one(op, inputs[0].name, axes=axes, keepdims=0)]

    return apply


for _primitive, _op in {"reduce_max": "ReduceMax", "reduce_min": "ReduceMin", "reduce_prod": "ReduceProd"}.items():
    OPERATORS[_primitive] = _reduction(_op)
OPERATORS["reduce_sum"] = _reduction("ReduceSum", axes_as_input=True)


def _logical(op: str) -> Operator:
    """All or any of some truth values, as the smallest or largest of numbers."""

    def apply(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
        numbers = graph.one("Cast", inputs[0].name, to=graph.onnx.TensorProto.INT32)
        found = graph.one(op, numbers, axes=[axis + 1 for axis in parameters["axes"]], keepdims=0)
        return [graph.one("Cast", found, to=graph.onnx.TensorProto.BOOL)]

    return apply


OPERATORS["reduce_and"], OPERATORS["reduce_or"] = _logical("ReduceMin"), _logical("ReduceMax")


def _index(op: str) -> Operator:
    def apply(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
        (axis,) = parameters["axes"]
        name = graph.one(op, inputs[0].name, axis=axis + 1, keepdims=0, select_last_index=0)
        return [graph.one("Cast", name, to=graph.onnx.helper.np_dtype_to_tensor_dtype(forms[0][1]))]

    return apply


OPERATORS["argmax"], OPERATORS["argmin"] = _index("ArgMax"), _index("ArgMin")


@_operator("cumsum")
def _cumsum(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    axis = graph.constant(np.int64(parameters["axis"] + 1))
    return [graph.one("CumSum", inputs[0].name, axis, reverse=int(parameters["reverse"]))]


@_operator("dot_general")
def _dot(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    """Any product of two arrays as an Einsum; the letter z is the batch."""
    (contract, batch), (left, right) = parameters["dimension_numbers"], inputs
    letters = iter(string.ascii_lowercase[:-1])
    shared = [next(letters) for _ in batch[0]]
    summed = [next(letters) for _ in contract[0]]
    terms, free = [], []
    for side, value in enumerate((left, right)):
        term = [""] * len(_shape_of(value))
        for letter, axis in [*zip(shared, batch[side], strict=True), *zip(summed, contract[side], strict=True)]:
            term[axis] = letter
        term = [letter or next(letters) for letter in term]
        free += [letter for letter in term if letter not in shared and letter not in summed]
        terms.append("".join(["z" if isinstance(value, Tensor) else "", *term]))
    equation = f"{','.join(terms)}->z{''.join([*shared, *free])}"
    names = [value.name if isinstance(value, Tensor) else graph.constant(value) for value in inputs]
    return [graph.one("Einsum", *names, equation=equation)]


@_operator("reshape", "squeeze", "expand_dims")
def _reshaped(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    return [_reshape(graph, inputs[0].name, forms[0][0])]


@_operator("transpose")
def _transpose(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    order = [0, *(axis + 1 for axis in parameters["permutation"])]
    return [graph.one("Transpose", inputs[0].name, perm=order)]


@_operator("broadcast_in_dim")
def _broadcast(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    shape = forms[0][0]
    aligned = [1] * len(shape)
    for axis, size in zip(parameters["broadcast_dimensions"], inputs[0].shape, strict=True):
        aligned[axis] = size
    name = inputs[0].name if tuple(aligned) == inputs[0].shape else _reshape(graph, inputs[0].name, aligned)
    return [name if tuple(aligned) == shape else graph.one("Expand", name, graph.ints([1, *shape]))]


@_operator("concatenate")
def _concatenate(
    graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]
) -> list[str]:
    names = [_batched(graph, value) for value in inputs]
    return [graph.one("Concat", *names, axis=parameters["dimension"] + 1)]


@_operator("stack")
def _stack(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    axis = graph.ints([parameters["axis"] + 1])
    names = [graph.one("Unsqueeze", _batched(graph, value), axis) for value in inputs]
    return [graph.one("Concat", *names, axis=parameters["axis"] + 1)]


@_operator("unstack")
def _unstack(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    axis = parameters["axis"] + 1
    return [
        graph.one("Gather", inputs[0].name, graph.constant(np.int64(index)), axis=axis) for index in range(len(forms))
    ]


@_operator("slice")
def _slice(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    first, last = parameters["start_indices"], parameters["limit_indices"]
    strides = parameters["strides"] or (1,) * len(first)
    axes = graph.ints(range(1, len(first) + 1))
    return [graph.one("Slice", inputs[0].name, graph.ints(first), graph.ints(last), axes, graph.ints(strides))]


def _moves(primitive: Callable[..., Any]) -> Operator:
    """Numbers taken from fixed places: the places come out when JAX moves the numbers of the places themselves."""

    def apply(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
        source, *where = inputs
        if not isinstance(source, Tensor) or any(isinstance(value, Tensor) for value in where):
            raise UsageError("places that depend on the observation cannot be read in ONNX here: use --stablehlo")
        size = int(np.prod(source.shape))
        places = primitive(jnp.arange(size, dtype=jnp.int32).reshape(source.shape), *where, **parameters)
        flat = _reshape(graph, source.name, (size,))
        results = places if isinstance(places, (list, tuple)) else [places]
        return [graph.one("Gather", flat, graph.constant(np.asarray(each, np.int64)), axis=1) for each in results]

    return apply


for _moving in ("gather", "dynamic_slice", "rev", "split"):
    OPERATORS[_moving] = _moves(getattr(jax.lax, f"{_moving}_p").bind)


@_operator("sort")
def _sort(graph: Graph, inputs: Sequence[Any], parameters: Mapping[str, Any], forms: Sequence[Form]) -> list[str]:
    """Sort by the first array, the others with it; equals keep their order."""
    if parameters["num_keys"] != 1:
        raise UsageError("a sort by several arrays cannot be written to ONNX here: use --stablehlo")
    axis, (keys, *others) = parameters["dimension"] + 1, (_batched(graph, value) for value in inputs)
    size = graph.ints([forms[0][0][parameters["dimension"]]])
    ordered, places = graph.add("TopK", [keys, size], 2, axis=axis, largest=0, sorted=1)
    return [ordered, *(graph.one("GatherElements", other, places, axis=axis) for other in others)]
