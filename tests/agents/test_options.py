"""Options as users write them: names, words, ranges, measures as text, and the support that follows."""

import math

import jax
import numpy as np
import pytest

from sentinel_rl.agents.options import make_sentinel, require_known
from sentinel_rl.agents.registry import make_agent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import UsageError
from sentinel_rl.heads import CategoricalHead, QuantileHead
from sentinel_rl.nets import DenseEncoder
from sentinel_rl.risk import CVaR, Expectation, Wang
from sentinel_rl.storage.configuration import identity

POLE = CartPole(max_steps=200).spec
UNKNOWN = EnvSpec("mystery", obs_size=2, num_actions=2)
PAPER_TOP = (1 - 0.99**200) / 0.01


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UsageError, match=r"unknown option gama: did you mean gamma\?"):
        make_sentinel(POLE, gama=0.9)
    with pytest.raises(UsageError, match="unknown option zzz: known are adam_eps, "):
        make_sentinel(POLE, zzz=1)
    with pytest.raises(UsageError, match=r"did you mean monitor_dir\?"):
        require_known(["monitordir"], ["k"], ["monitor_dir"])


def test_readings_differ_as_named_and_yield_to_options():
    sound, literal = make_sentinel(POLE), make_sentinel(POLE, reading="literal")
    assert (sound.target_update, sound.bootstrap_action) == ("copy", "online")
    assert (literal.target_update, literal.bootstrap_action) == ("gradient", "target")
    assert make_sentinel(POLE, reading="literal", target_update="copy").target_update == "copy"
    with pytest.raises(UsageError, match="unknown reading 'paper': choose one of sound, literal"):
        make_sentinel(POLE, reading="paper")


def test_a_reading_given_as_a_preset_is_set_right():
    with pytest.raises(UsageError, match="unknown preset 'literal': that is a reading, reading='literal': choose one"):
        make_sentinel(POLE, preset="literal")
    with pytest.raises(UsageError, match="unknown preset 'nature': choose one of learner, paper"):
        make_sentinel(POLE, preset="nature")


def test_measures_are_objects_or_text():
    agent = make_sentinel(POLE, aleatory="wang:0.1", epistemic=Expectation())
    assert (agent.aleatory, agent.epistemic) == (Wang(0.1), Expectation())
    assert make_sentinel(POLE).aleatory == CVaR(0.5)
    assert make_sentinel(POLE, preset="paper").aleatory == CVaR(0.25)


def test_where_no_range_is_known_the_learner_begins_neutral_and_ends_milder():
    agent = make_sentinel(UNKNOWN)
    assert (agent.aleatory, agent.epistemic, agent.alpha_start) == (CVaR(0.75), CVaR(0.75), 1.0)
    own = make_sentinel(UNKNOWN, aleatory="cvar:0.1", alpha_start=None, average_over=None)
    assert (own.aleatory, own.epistemic, own.alpha_start, own.average_over) == (CVaR(0.1), CVaR(0.75), None, None)
    untightened = make_sentinel(UNKNOWN, aleatory="wang:0.1", epistemic="expectation")
    assert untightened.alpha_start is None, "there is nothing to tighten"
    table = make_sentinel(EnvSpec("States", 5, 2, structure="states"))
    assert (table.encoder, table.aleatory, table.alpha_start) == ("table", CVaR(0.5), None), "as it was measured"


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("cvar:0.25 o cvar:0.5", "is a composite: give one measure for aleatory and one for epistemic"),
        ("additive o cvar:0.5", "is a composite"),
        ("cvr:0.25", "aleatory: unknown risk measure 'cvr': did you mean 'cvar'"),
        ("cvar:2", "aleatory: .*in \\(0, 1\\]"),
        (0.25, "or text such as 'cvar:0.25', got 0.25"),
    ],
)
def test_bad_measures_are_refused(measure: object, message: str):
    with pytest.raises(UsageError, match=message):
        make_sentinel(POLE, aleatory=measure)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1 and at most 10000, got 0"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"k": True}, "k must be a whole number"),
        ({"batch": 0}, "batch must be"),
        ({"capacity": -1}, "capacity must be"),
        ({"hidden": (8, 0)}, "hidden must be sizes"),
        ({"lam": -0.1}, "lam must be at least 0, got -0.1"),
        ({"lam": math.nan}, "lam must be at least 0, got nan"),
        ({"learning_rate": -1.0}, "learning_rate must be"),
        ({"gamma": 0.0}, r"gamma must be in \(0, 1\], got 0.0"),
        ({"gamma": 1.1}, "gamma must be"),
        ({"mask_rate": 1.5}, "mask_rate must be"),
        ({"mask": "bernouli"}, "mask must be one of bernoulli, poisson, exponential, got 'bernouli'"),
        ({"target_update": "soft"}, "target_update must be one of copy, gradient"),
        ({"encoder": "deep"}, "unknown encoder 'deep'"),
        ({"head": "gaussian"}, "unknown head 'gaussian': choose one of auto, categorical, quantile"),
        ({"head": 3}, "head must be a name or a sentinel_rl.heads.Head, got 3"),
        ({"n_step": 0}, "n_step must be a whole number of at least 1 and at most 1000000000, got 0"),
        ({"n_step": 1.5}, "n_step must be a whole number"),
        ({"max_grad_norm": 0}, "max_grad_norm must be a number above 0 and at most 1e[+]15, got 0"),
        ({"time_limit": None}, "time_limit must be one of terminal, bootstrap, got None"),
        ({"prefer": "best"}, "prefer must be one of"),
        ({"prior_scale": -1.0}, "prior_scale must be at least 0 and at most 1e[+]15, got -1.0"),
        ({"prior_on": "logits"}, "prior_on must be one of outputs, mean, got 'logits'"),
        ({"layer_norm": 1}, "^layer_norm must be true or false, got 1$"),
        ({"layer_norm": "yes"}, "^layer_norm must be true or false, got 'yes'$"),
        ({"layer_norm": np.True_}, "^layer_norm must be true or false, got "),
        (
            {"layer_norm": True, "preset": "paper"},
            "^layer_norm needs one of the encoders mlp, set, cnn, and the encoder is 'separate': use encoder='mlp', or "
            "leave layer_norm out$",
        ),
        (
            {"layer_norm": True, "hidden": ()},
            r"^layer_norm normalises hidden layers, and hidden=\(\) has none: leave layer_norm out$",
        ),
        (
            {"layer_norm": True, "encoder": DenseEncoder()},
            "^layer_norm normalises the layers of the encoders mlp, set, cnn, and the encoder is a DenseEncoder, whose "
            "layers are its own: leave layer_norm out$",
        ),
        ({"alpha_start": 1.5}, r"alpha_start must be in \(0, 1\], got 1.5"),
        ({"alpha_fraction": 0.0}, r"alpha_fraction must be in \(0, 1\], got 0.0"),
        (
            {"alpha_start": 1.0, "aleatory": "wang:0.1", "epistemic": "expectation"},
            "alpha_start tightens cvar and evar, and the measures are expectation and wang:0.1: leave it out",
        ),
        ({"atoms": 1}, "at least 2 atoms"),
        ({"v_min": 5.0, "v_max": 5.0, "preset": "paper"}, "low < high"),
        ({"v_min": 5.0, "v_max": math.inf, "preset": "paper"}, "finite"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, object], message: str):
    with pytest.raises(UsageError, match=message):
        make_sentinel(POLE, **options)


@pytest.mark.parametrize("agent", ["sentinel", "cdqn", "vdqn", "vdqn-cvar", "uadqn"])
def test_layer_norm_that_is_off_is_nothing(agent: str):
    """It neither names a run nor adds to a state: False and None are the agent as it was before the option."""
    usual = make_agent(agent, POLE, preset="learner", hidden=(3,))
    for off in (False, None):
        other = make_agent(agent, POLE, preset="learner", hidden=(3,), layer_norm=off)
        assert other.layer_norm is None
        assert other == usual
    assert "layer_norm" not in identity(usual)
    chosen = make_agent(agent, POLE, preset="learner", hidden=(3,), layer_norm=True)
    assert identity(chosen) == identity(usual) | {"layer_norm": True}
    made_of = {
        each: len(
            jax.tree.leaves(jax.eval_shape(lambda key, each=each: each.init(POLE, key).online, jax.random.key(0)))
        )
        for each in (usual, chosen)
    }
    assert made_of[chosen] == made_of[usual] + 2, "a gain and a shift for every sum of the one hidden layer"


def test_states_have_no_layers_to_normalise():
    """A table has none; agents that need an encoder take dense layers in its place."""
    states = EnvSpec("states", 9, 3, (0.0, 1.0), 20, structure="states")
    with pytest.raises(UsageError, match=r"^layer_norm needs one of .*, and the encoder is 'table': use encoder='mlp'"):
        make_sentinel(states, layer_norm=True)
    assert make_sentinel(states, layer_norm=True, encoder="mlp").layer_norm
    assert make_agent("uadqn", states, layer_norm=True, preset="learner").encoder == "mlp"


@pytest.mark.parametrize("agent", ["vdqn", "vdqn-cvar", "uadqn"])
def test_layer_norm_needs_an_encoder(agent: str):
    told = (
        "^layer_norm needs one of the encoders mlp, set, cnn, and there is none: give encoder='mlp' or "
        "preset='learner', or leave layer_norm out$"
    )
    with pytest.raises(UsageError, match=told):
        make_agent(agent, POLE, layer_norm=True)
    with pytest.raises(UsageError, match=r"^layer_norm must be true or false, got 1$"):
        make_agent(agent, POLE, layer_norm=1, encoder="mlp")
    with pytest.raises(UsageError, match="and the encoder is 'separate': use encoder='mlp'"):
        make_agent(agent, POLE, layer_norm=True, encoder="separate")
    assert make_agent(agent, POLE, layer_norm=True, encoder="mlp").layer_norm


def test_the_support_follows_from_rewards_discount_and_time_limit():
    support = make_sentinel(POLE, preset="paper").support
    assert (support.low, support.size) == (0.0, 51)
    assert support.high == pytest.approx(PAPER_TOP, rel=1e-12)
    assert make_sentinel(POLE, time_limit="bootstrap").support.high == pytest.approx(100.0)
    assert make_sentinel(POLE, gamma=1.0, time_limit="terminal").support.high == 200.0


def test_a_reward_range_or_edges_can_be_given():
    support = make_sentinel(UNKNOWN, reward_range=(-1.0, 0.5), gamma=0.9, atoms=11).support
    assert (support.low, support.high, support.size) == (pytest.approx(-10.0), pytest.approx(5.0), 11)
    support = make_sentinel(POLE, preset="paper", v_min=-1.0, v_max=2.0).support
    assert (support.low, support.high) == (-1.0, 2.0)
    support = make_sentinel(POLE, preset="paper", v_min=0.0, v_max=2.0).support
    assert support.low == 0.0, "zero is a value, not an absence"


def test_an_unknown_range_of_returns_is_asked_for():
    with pytest.raises(UsageError, match="returns of mystery is not known: give v_min and v_max, or the reward_range"):
        make_sentinel(UNKNOWN, preset="paper")
    with pytest.raises(UsageError, match="is not known"):
        make_sentinel(UNKNOWN, reward_range=(0.0, 1.0), gamma=1.0, head="categorical")
    with pytest.raises(UsageError, match="is not known"):
        make_sentinel(UNKNOWN, v_min=0.0)  # half of a range: quantiles would ignore it


def test_a_range_of_returns_is_not_needed():
    """Quantiles where none is known; categorical laws where it follows from the rewards, or is given."""
    assert isinstance(make_sentinel(UNKNOWN).head, QuantileHead)
    assert isinstance(make_sentinel(UNKNOWN, reward_range=(0.0, 1.0), gamma=1.0).head, QuantileHead)
    assert isinstance(make_sentinel(POLE, head="quantile").head, QuantileHead)
    assert make_sentinel(UNKNOWN, atoms=7).head.outputs == 7
    for known in ({"reward_range": (0.0, 1.0)}, {"v_min": 0.0, "v_max": 1.0}):
        assert isinstance(make_sentinel(UNKNOWN, **known).head, CategoricalHead)
    with pytest.raises(UsageError, match="'quantile' has no range of returns: leave out v_min and v_max"):
        make_sentinel(UNKNOWN, head="quantile", v_min=0.0, v_max=1.0)


@pytest.mark.parametrize(("limit", "gamma"), [(None, 0.99), (10, 0.95), (40, 0.95), (100, 0.98), (1_000, 0.99)])
def test_the_discount_follows_from_the_time_limit(limit: int | None, gamma: float):
    assert make_sentinel(EnvSpec("limited", 3, 2, max_steps=limit)).gamma == gamma
    assert make_sentinel(EnvSpec("limited", 3, 2, max_steps=limit), gamma=0.5).gamma == 0.5


def test_bootstrapping_through_time_limits_needs_room():
    with pytest.raises(UsageError, match=r"\[0, 86\.6\d*\] cannot hold .* they reach \[0, 100\]"):
        make_sentinel(POLE, time_limit="bootstrap", v_max=PAPER_TOP)
    assert make_sentinel(POLE, time_limit="bootstrap", v_max=120.0).support.high == 120.0


@pytest.mark.parametrize(("agent", "option"), [("vdqn", "encoder"), ("uadqn", "encoder"), ("sentinel", "prior_on")])
@pytest.mark.parametrize("value", [np.array([1, 2]), np.array([])], ids=["two", "none"])
@pytest.mark.usefixtures("untyped")
def test_an_array_in_place_of_a_word_is_refused(agent: str, option: str, value: np.ndarray):
    with pytest.raises(UsageError, match=option.split("_")[0]):
        make_agent(agent, POLE, **{option: value})
