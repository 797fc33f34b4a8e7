"""Pytrees of every kind of array that is saved, with every bit pattern, and what it means that two are the same."""

import jax
import numpy as np
from hypothesis import strategies as st

from sentinel_rl.storage.arrays import DTYPES

WIDE = frozenset({"int64", "uint64", "float64", "complex128"})
GENERATORS = ("threefry2x32", "rbg", "unsafe_rbg")
SHAPES = ((), (0,), (1,), (3,), (2, 3), (2, 0, 3), (2, 1, 2))


@st.composite
def arrays(draw):
    """NumPy arrays of arbitrary bits: NaN of every payload, infinities, -0.0, the largest integers."""
    dtype = np.dtype(draw(st.sampled_from(sorted(DTYPES))))
    shape = draw(st.sampled_from(SHAPES))
    size = int(np.prod(shape)) * dtype.itemsize
    bits = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
    if dtype.kind == "b":
        bits = bits & 1
    array = bits.view(dtype).reshape(shape)
    return array.T if draw(st.booleans()) else array


def on_device(array):
    """The JAX array of the same bits."""
    with jax.enable_x64(True):
        return jax.device_put(array)


@st.composite
def keys(draw):
    """Typed PRNG keys, single and in batches, of all generators."""
    key = jax.random.key(draw(st.integers(0, 2**31)), impl=draw(st.sampled_from(GENERATORS)))
    return draw(st.sampled_from([lambda: key, lambda: jax.random.split(key, 2)]))()


def trees(leaves=None):
    """Nested lists, tuples and dictionaries of them; some are empty, some only one array."""
    if leaves is None:
        leaves = arrays() | arrays().map(on_device) | keys()
    return st.recursive(
        leaves | st.none(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.tuples(inner, inner)
            | st.dictionaries(st.text(max_size=4), inner, max_size=3)
        ),
        max_leaves=6,
    )


def shapes_of(tree):
    """The form of a tree, without its arrays."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


def bits_of(leaf):
    """All that an array is: its type, its shape and its bytes."""
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return str(jax.random.key_impl(leaf)), *bits_of(jax.random.key_data(leaf))
    host = np.asarray(jax.device_get(leaf))
    return host.dtype, host.shape, host.tobytes()


def assert_same(one, other):
    """Two trees have the same form and the same bits."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for pair in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert bits_of(pair[0]) == bits_of(pair[1])
