"""Configurations as text: one for each, and an account of what differs."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.errors import UsageError
from sentinel_rl.storage.configuration import Difference, canonical, differences, digest, plain, table

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_it_is_strict_json_and_says_the_same_again(value):
    def forbidden(constant):
        raise AssertionError(f"{constant} is no JSON")

    read = json.loads(canonical(value), parse_constant=forbidden)
    assert canonical(read) == canonical(value)
    assert plain(read) == read


@given(VALUES, VALUES)
def test_two_values_differ_exactly_when_a_difference_is_named(one, other):
    assert (differences(one, other) == []) == (canonical(one) == canonical(other))
    assert differences(one, one) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.5), "0.5"),
        (np.bool_(True), "true"),
        (np.arange(3), "[0,1,2]"),
        (jnp.arange(2), "[0,1]"),
        ((1, (2.0, None)), "[1,[2.0,null]]"),
        ({2: -np.inf, "a": np.nan}, '{"2":"-inf","a":"nan"}'),
        (Path("runs") / "pole", '"runs/pole"'),
        ("\u03b1", '"\\u03b1"'),
    ],
)
def test_by_hand(value, text):
    assert canonical(value) == text


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), 1j, lambda: None])
def test_what_json_does_not_know_is_refused_with_its_place(value):
    with pytest.raises(UsageError, match=r"value\.a\[0\] is of type"):
        canonical({"a": [value]})


def test_the_hash_does_not_change_between_versions():
    """Folders of runs, and cells of studies, are known by it."""
    assert digest({"k": 4, "alpha": 0.25, "seeds": [0, 1]}) == "fd1c10e3cc4ce042"


def test_an_integer_is_not_a_float():
    assert differences({"gamma": 1}, {"gamma": 1.0}) == [Difference("gamma", "1", "1.0")]


def test_long_values_are_cut():
    assert table([Difference("seeds", "[" + "0," * 100, "[]")]).splitlines()[1].endswith("...  []")
