"""A traced JAX function of one observation as nodes of an ONNX graph for a batch of any size.

The function is traced for one observation, and every value that depends on it gets the axis of the batch in front: what
`jax.vmap` does, with a size that stays free. What does not depend on the observation (weights, grids, random numbers of
fixed keys) is computed here and becomes a constant. Loops of a fixed length are unrolled.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core

from sentinel_rl.errors import UsageError
from sentinel_rl.export.graph import Graph, Tensor
from sentinel_rl.export.operators import OPERATORS

# Primitives that only hold another function, and the name of the parameter that holds it.
_WRAPPERS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
}
_LONGEST_LOOP = 200


def lower(graph: Graph, function: Callable[..., Any], argument: Tensor) -> Any:
    """Add what a function computes of a tensor to a graph; returns its outputs as it does, of tensors and constants.

    Raises:
        UsageError: for an operation that has no form in ONNX here.
    """
    form = jax.ShapeDtypeStruct(argument.shape, argument.dtype)
    closed, shape = jax.make_jaxpr(function, return_shape=True)(form)
    outputs = _run(graph, closed.jaxpr, closed.consts, [argument])
    return jax.tree.unflatten(jax.tree.structure(shape), outputs)


def _run(graph: Graph, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
    known.update(zip(jaxpr.invars, arguments, strict=True))

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, core.Literal) else known[variable]

    for equation in jaxpr.eqns:
        inputs = [read(variable) for variable in equation.invars]
        outputs = _equation(graph, equation, inputs)
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _equation(graph: Graph, equation: Any, inputs: list[Any]) -> list[Any]:
    name, parameters = equation.primitive.name, equation.params
    if name in _WRAPPERS:
        inner = parameters[_WRAPPERS[name]]
        return _run(graph, *_parts(inner), inputs)
    if not any(isinstance(value, Tensor) for value in inputs):
        found = equation.primitive.bind(*inputs, **parameters)
        return list(found) if equation.primitive.multiple_results else [found]
    if name == "scan":
        return _scan(graph, parameters, inputs)
    if name == "while":
        return _while(graph, parameters, inputs)
    if name == "cond":
        return _cond(graph, parameters, inputs)
    if name not in OPERATORS:
        raise UsageError(
            f"the operation {name!r} cannot be written to ONNX here: use --stablehlo, which takes every agent, or "
            "another encoder or risk measure"
        )
    shapes = [(tuple(variable.aval.shape), np.dtype(variable.aval.dtype)) for variable in equation.outvars]
    names = OPERATORS[name](graph, inputs, parameters, shapes)
    return [Tensor(one, *form) for one, form in zip(names, shapes, strict=True)]


def _parts(inner: Any) -> tuple[Any, Sequence[Any]]:
    """The body of an inner function and its constants."""
    return (inner.jaxpr, inner.consts) if hasattr(inner, "consts") else (inner, ())


def _scan(graph: Graph, parameters: Any, inputs: list[Any]) -> list[Any]:
    """A loop of fixed length, step by step."""
    length, fixed, carried = parameters["length"], parameters["num_consts"], parameters["num_carry"]
    _require_short(length)
    constants, carry, rows = inputs[:fixed], inputs[fixed : fixed + carried], inputs[fixed + carried :]
    steps: list[list[Any]] = []
    order = range(length - 1, -1, -1) if parameters["reverse"] else range(length)
    for step in order:
        now = [_row(graph, value, step) for value in rows]
        outputs = _run(graph, *_parts(parameters["jaxpr"]), [*constants, *carry, *now])
        carry = outputs[:carried]
        steps.append(outputs[carried:])
    steps = steps[::-1] if parameters["reverse"] else steps
    return [*carry, *(_stack(graph, list(column)) for column in zip(*steps, strict=True))]


def _while(graph: Graph, parameters: Any, inputs: list[Any]) -> list[Any]:
    """A loop whose number of steps does not depend on the observation."""
    tests, fixed = parameters["cond_nconsts"], parameters["body_nconsts"]
    of_test, of_body, carry = inputs[:tests], inputs[tests : tests + fixed], inputs[tests + fixed :]
    for step in range(_LONGEST_LOOP + 1):
        (more,) = _run(graph, *_parts(parameters["cond_jaxpr"]), [*of_test, *carry])
        if isinstance(more, Tensor):
            raise UsageError("a loop as long as the observation says cannot be written to ONNX: use --stablehlo")
        if not bool(more):
            break
        _require_short(step + 1)
        carry = _run(graph, *_parts(parameters["body_jaxpr"]), [*of_body, *carry])
    return carry


def _cond(graph: Graph, parameters: Any, inputs: list[Any]) -> list[Any]:
    """One branch where the choice is known; else both of two, of which each element of the batch takes one."""
    which, *arguments = inputs
    branches = parameters["branches"]
    if not isinstance(which, Tensor):
        chosen = branches[int(np.clip(int(which), 0, len(branches) - 1))]
        return _run(graph, *_parts(chosen), arguments)
    if len(branches) != 2:
        raise UsageError("a switch by the observation of more than two branches cannot be written to ONNX here")
    first, second = (_run(graph, *_parts(branch), arguments) for branch in branches)
    test = Tensor(graph.one("Cast", which.name, to=graph.onnx.TensorProto.BOOL), which.shape, np.dtype(bool))
    return [_choose(graph, test, off, on) for off, on in zip(first, second, strict=True)]


def _choose(graph: Graph, test: Tensor, off: Any, on: Any) -> Any:
    like = next((value for value in (off, on) if isinstance(value, Tensor)), None)
    form = (like.shape, like.dtype) if like is not None else (np.shape(off), np.asarray(off).dtype)
    return Tensor(OPERATORS["select_n"](graph, [test, off, on], {}, [form])[0], *form)


def _row(graph: Graph, value: Any, step: int) -> Any:
    """One step of what a loop goes over."""
    if not isinstance(value, Tensor):
        return value[step]
    name = graph.one("Gather", value.name, graph.constant(np.int64(step)), axis=1)
    return Tensor(name, value.shape[1:], value.dtype)


def _stack(graph: Graph, values: list[Any]) -> Any:
    if not any(isinstance(value, Tensor) for value in values):
        return jax.numpy.stack(values)
    like = next(value for value in values if isinstance(value, Tensor))
    form = ((len(values), *like.shape), like.dtype)
    return Tensor(OPERATORS["stack"](graph, values, {"axis": 0}, [form])[0], *form)


def _require_short(length: int) -> None:
    if length > _LONGEST_LOOP:
        raise UsageError(
            f"a loop of more than {_LONGEST_LOOP} steps is too long to be written out in ONNX: use --stablehlo"
        )
