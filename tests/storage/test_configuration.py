"""Configurations as text: one for each, an account of what differs, and what names an object."""

import dataclasses
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.errors import UsageError
from sentinel_rl.storage.configuration import (
    Difference,
    canonical,
    differences,
    digest,
    identity,
    plain,
    restored,
    table,
)

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


@dataclasses.dataclass
class Part:
    """An object with a name."""

    size: int = 3
    rate: "float | None" = None
    inner: object = None


class Newer(Part):
    """One whose author counts its versions."""

    version = "b"


@dataclasses.dataclass
class Counted:
    """One that has its version for a field."""

    version: int = 7


NAME = f"{Part.__module__}.Part"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Part(), {"class": NAME, "size": 3}),
        (Part(rate=2.0), {"class": NAME, "size": 3, "rate": 2}),
        (Part(rate=np.inf), {"class": NAME, "size": 3, "rate": "inf"}),
        (Newer(), {"class": f"{Part.__module__}.Newer", "version": "b", "size": 3}),
        (Counted(), {"class": f"{Part.__module__}.Counted", "version": 7}),
        ([Part, plain], [{"function": NAME}, {"function": "sentinel_rl.plain"}]),
        ({"a": (1, range(2))}, {"a": [1, [0, 1]]}),
        (np.float32(0.5), 0.5),
        (jnp.arange(3), [0, 1, 2]),
    ],
)
def test_an_object_is_named_by_its_class_and_its_fields_that_are_not_none(value, expected):
    found = identity(value)
    assert canonical(found) == canonical(expected)
    assert canonical(found) == canonical(plain(found)), "it can be written down"


def test_a_large_array_is_named_by_its_bytes():
    many = np.zeros((10, 10), np.float32)
    found = identity(many)
    assert found == identity(many.copy()) == identity(np.asfortranarray(many))
    assert found["array"] == "float32[10, 10]"
    assert found != identity(many.reshape(4, 25)) != identity(many.astype(np.float64))


def test_what_cannot_be_named_is_told_with_its_place():
    class Local:
        pass

    with pytest.raises(UsageError, match=r"agent\.inner\.inner is of type Local, which cannot be named in a file"):
        identity(Part(inner=Part(inner=Local())), "agent")
    with pytest.raises(UsageError, match=r"agent\.inner\[0\] is 'test_what_.*Local', which cannot be named"):
        identity(Part(inner=[dataclasses.dataclass(Local)()]), "agent")


@given(VALUES)
def test_tuples_and_infinity_come_back(value):
    read = json.loads(canonical({"hidden": (1, (2,)), "lam": -np.inf, "value": value}))
    assert restored(read)["hidden"] == (1, (2,))
    assert restored(read)["lam"] == -np.inf
    if value not in ("inf", "-inf"):
        assert canonical(restored(read)) == canonical(read)
