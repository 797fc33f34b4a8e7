"""An ONNX graph under construction: nodes, constants, and tensors whose first axis is the free batch."""

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

OPSET, IR_VERSION = 17, 8


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A value that depends on the input.

    Args:
        name: in the graph.
        shape: of one element of the batch; the tensor in the graph has the axis of the batch before it.
        dtype: of its numbers.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Graph:
    """Collects nodes; the same operation on the same inputs is one node.

    Args:
        onnx: the module, which is imported only where something is exported.
    """

    def __init__(self, onnx: Any):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self._known: dict[Any, tuple[str, ...]] = {}
        self._count = 0

    def input(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The tensor that is fed in."""
        self._input = name
        return Tensor(name, shape, np.dtype(np.float32))

    def constant(self, value: Any) -> str:
        """The name of a constant; equal ones share it."""
        array = np.asarray(value)
        digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
        name = f"c_{array.dtype}_{'x'.join(map(str, array.shape))}_{digest}"
        self.constants[name] = array
        return name

    def ints(self, numbers: Iterable[Any]) -> str:
        """The name of a list of whole numbers: axes, shapes, bounds."""
        return self.constant(np.asarray(list(numbers), np.int64))

    def add(self, op: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> tuple[str, ...]:
        """Add a node unless it is there, and return the names of its outputs."""
        key = (op, tuple(inputs), outputs, repr(sorted(attributes.items())))
        if key not in self._known:
            names = tuple(f"t{self._count + index}" for index in range(outputs))
            self._count += outputs
            self.nodes.append(self.onnx.helper.make_node(op, list(inputs), list(names), **attributes))
            self._known[key] = names
        return self._known[key]

    def one(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one output, and return its name."""
        return self.add(op, inputs, **attributes)[0]

    def repeated(self, value: Any) -> str:
        """A constant with the axis of the batch before it, as long as that of the input."""
        array = np.asarray(value)
        batch = self.one("Slice", self.one("Shape", self._input), self.ints([0]), self.ints([1]))
        shape = self.one("Concat", batch, self.ints(array.shape), axis=0) if array.ndim else batch
        return self.one("Expand", self.constant(array[None]), shape)

    def model(self, inputs: Sequence[Tensor], outputs: Mapping[str, Tensor], about: Mapping[str, str]) -> Any:
        """The finished model, without the nodes that no output needs.

        Args:
            inputs: what is fed in.
            outputs: what comes out, by name.
            about: texts that are kept in the file.
        """
        helper = self.onnx.helper
        for name, tensor in outputs.items():
            self.nodes.append(helper.make_node("Identity", [tensor.name], [name]))
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                kept.append(node)
                needed |= set(node.input)
        constants = [
            self.onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items() if name in needed
        ]
        graph = helper.make_graph(
            kept[::-1],
            "policy",
            [self._info(tensor.name, tensor) for tensor in inputs],
            [self._info(name, tensor) for name, tensor in outputs.items()],
            constants,
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="sentinel-rl", ir_version=IR_VERSION
        )
        helper.set_model_props(model, dict(about))
        self.onnx.checker.check_model(model, full_check=True)
        return model

    def _info(self, name: str, tensor: Tensor) -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype)
        return self.onnx.helper.make_tensor_value_info(name, kind, ["batch", *tensor.shape])
