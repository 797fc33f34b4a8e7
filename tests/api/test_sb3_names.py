"""SB3's names: the same agent under both, and a sentence for what has no place here."""

from typing import Any

import numpy as np
import pytest

from sentinel_rl.api.classes import UADQN, Sentinel
from sentinel_rl.errors import UsageError
from tests.tiny import tiny

SIZES: dict[str, Any] = {"k": 2, "atoms": 5}
THEIRS = {
    "buffer_size": 64,
    "learning_starts": 10,
    "batch_size": 8,
    "train_freq": (20, "step"),
    "gradient_steps": 2,
    "target_update_interval": 100,
    "exploration_fraction": 0.5,
    "exploration_initial_eps": 0.9,
    "exploration_final_eps": 0.1,
    "policy_kwargs": {"net_arch": [4]},
    "learning_rate": lambda left: 1e-3 * left,
    "tau": 1.0,
    "device": "auto",
    "seed": None,
}
OURS = {
    "capacity": 64,
    "warmup": 10,
    "batch": 8,
    "learn_every": 20,
    "samples": 16,
    "target_every": 5,
    "epsilon_fraction": 0.5,
    "epsilon_start": 0.9,
    "epsilon_end": 0.1,
    "hidden": (4,),
    "learning_rate": 1e-3,
    "learning_rate_end": 0.0,
}


def test_the_names_of_sb3_make_the_same_agent():
    one, other = (Sentinel("MlpPolicy", "CartPole-v0", **SIZES, **names) for names in (THEIRS, OURS))
    assert one.agent == other.agent
    assert one._job(500, [0]).plan == other._job(500, [0]).plan
    assert (one.device, one.seed) == ("cpu", 0)


def test_numbers_that_are_computed():
    constant = Sentinel("MlpPolicy", "CartPole-v0", **SIZES, learning_rate=lambda left: 1e-3).agent
    assert (constant.learning_rate, constant.learning_rate_end) == (1e-3, None)
    every = Sentinel("MlpPolicy", "CartPole-v0", **SIZES, train_freq=4, gradient_steps=-1, batch_size=8).agent
    assert (every.samples, every.batch) == (32, 8)
    large = Sentinel("MlpPolicy", "CartPole-v0", **SIZES, batch_size=1_000).agent
    assert (large.samples, large.batch) == (1_000, 1_000), "an update has one minibatch at least"
    quantiles = UADQN("MlpPolicy", "CartPole-v0", policy_kwargs={"net_arch": [4], "n_quantiles": 7}).agent
    assert (quantiles.hidden, quantiles.quantiles) == ((4,), 7)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tau": 0.005}, "tau=0.005 has no place here: target networks are copied whole, every target_every updates"),
        ({"replay_buffer_class": dict}, "of the size capacity"),
        ({"train_freq": (1, "episode")}, "after steps here, not episodes, give learn_every"),
        ({"policy_kwargs": {"activation_fn": np.tanh}}, r"activation_fn has no place here\. Give hidden"),
        ({"policy_kwargs": {"net_arch": {"pi": [4]}}}, r"net_arch=\{'pi': \[4\]\} has no place here"),
        ({"buffer_size": 10, "capacity": 10}, "capacity is given twice"),
        ({"gradient_steps": 1, "samples": 8}, "samples is given twice"),
        ({"learning_rate": lambda left: left**2}, "constant or linear: give learning_rate, and learning_rate_end"),
        ({"learn_every": "triangular", "target_update_interval": 100}, "give target_every, a number of updates"),
        ({"learn_every": "triangular", "gradient_steps": -1}, "give samples and batch"),
        ({"device": "cuda"}, r"JAX computes on cpu: pip install 'sentinel-rl\[gpu\]'"),
        ({"device": "abacus"}, "device is 'auto', 'cpu', 'cuda' or 'tpu', got 'abacus'"),
        ({"bufer_size": 10}, "unknown option bufer_size"),
    ],
)
def test_what_has_no_place_here_is_answered(given: dict[str, Any], told: str):
    with pytest.raises(UsageError, match=told):
        Sentinel("MlpPolicy", "CartPole-v0", **SIZES, **given)


def test_a_logger_is_asked_for_its_methods():
    with pytest.raises(UsageError, match="record"):
        tiny().set_logger(3)
