"""Tables of outputs, for observations that are the number of a state."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl import make_agent
from sentinel_rl.envs import EnvSpec
from sentinel_rl.envs.handle import spec_of
from sentinel_rl.errors import UsageError
from sentinel_rl.nets import Networks, Table, add_prior, encoder_for, make_networks
from sentinel_rl.nets.table import LARGEST

STATES = EnvSpec("states", 16, 3, structure="states")
ONE_HOT = jnp.eye(16)


def drawn(key: int = 0) -> Table:
    """A table as it may have been learnt."""
    return Table(jax.random.normal(jax.random.key(key), (2, 16, 12)), 3)


def test_the_outputs_are_a_product_with_the_one_hot_observation():
    """A table is one linear layer without bias, of one-hot numbers times the root of their count."""
    table = drawn()
    expected = jnp.einsum("bs,kso->kbo", 4.0 * ONE_HOT, table.entries).reshape(2, 16, 3, 4)
    np.testing.assert_allclose(table.batch(ONE_HOT), expected, rtol=1e-6)


def test_all_ways_through_a_table_agree():
    table, batch = drawn(), drawn().batch(ONE_HOT)
    np.testing.assert_array_equal(batch, jnp.stack([table(one) for one in ONE_HOT], axis=1))
    np.testing.assert_array_equal(batch, jnp.moveaxis(table.columns(ONE_HOT), -1, 1))
    own = jnp.stack([ONE_HOT, ONE_HOT[::-1]])
    np.testing.assert_array_equal(table.per_member(own), jnp.stack([batch[0], batch[1, ::-1]]))
    assert table.parameters == 2 * 16 * 12
    np.testing.assert_array_equal(table.features(ONE_HOT[5]), jnp.stack([ONE_HOT[5]] * 2))


def test_what_is_learnt_of_a_state_changes_no_other():
    def of_state_five(table: Table) -> jax.Array:
        return jnp.sum(table.batch(ONE_HOT[5:6]) ** 2)

    moved = np.asarray(jax.grad(of_state_five)(drawn()).entries)
    assert np.abs(moved[:, 5]).min() > 0
    assert not np.delete(moved, 5, axis=1).any()


def test_numbers_of_states_get_a_table_of_zeros_unless_it_is_too_large():
    table = make_networks(jax.random.key(0), 2, STATES, 4)
    assert isinstance(table, Table)
    assert table.entries.shape == (2, 16, 12)
    assert not table.entries.any()
    many = EnvSpec("many", LARGEST // 3 + 1, 3, structure="states")
    assert isinstance(make_networks(jax.random.key(0), 1, many, 1, hidden=(2,)), Networks)


@pytest.mark.parametrize(
    ("spec", "hidden", "told"),
    [
        (
            EnvSpec("plain", 16, 3),
            None,
            "the encoder 'table' needs the number of a state, and plain says structure=None",
        ),
        (STATES, (8,), r"the encoder 'table' has no hidden layers: leave out hidden=\(8,\)"),
    ],
)
def test_what_does_not_fit_is_refused(spec: EnvSpec, hidden: tuple[int, ...] | None, told: str):
    with pytest.raises(UsageError, match=told):
        make_networks(jax.random.key(0), 2, spec, 4, "table", hidden)


def test_priors_of_states_are_drawn_by_themselves_with_outputs_of_about_one():
    of = 2, EnvSpec("states", 400, 3, structure="states"), 4, "table", None, False
    outputs = add_prior(jax.random.key(0), make_networks(jax.random.key(0), *of), *of, 1.0).batch(jnp.eye(400))
    assert float(jnp.std(outputs)) == pytest.approx(1.0, abs=0.03)
    assert abs(float(jnp.corrcoef(outputs[0].ravel(), outputs[1].ravel())[0, 1])) < 0.05


@pytest.mark.parametrize(("name", "structure"), [("FrozenLake-v1", "states"), ("Blackjack-v1", None)])
def test_a_discrete_observation_is_known_as_the_number_of_a_state(name: str, structure: str | None):
    spec = spec_of(gymnasium.make(name))
    assert (spec.structure, spec.in_bytes) == (structure, structure == "states")


def test_the_agent_for_states_has_a_table():
    agent = make_agent("sentinel", "FrozenLake-v1", k=2, atoms=5, capacity=10)
    assert (agent.encoder, agent.hidden) == ("table", ())


@pytest.mark.parametrize("name", ["vdqn", "uadqn"])
def test_agents_whose_last_layer_is_apart_have_a_network_all_the_same(name: str):
    assert make_agent(name, STATES, preset="learner").encoder == "mlp"
    with pytest.raises(UsageError, match="'table' has the outputs of every state, and no encoder before them"):
        encoder_for(STATES, "table")
