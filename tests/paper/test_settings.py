"""The settings are the paper's tables."""

import re
from pathlib import Path

import pytest

from sentinel_paper.settings import CARTPOLE, HIGHWAY, PRESETS, READING_OPTION, options_for
from sentinel_rl.agents import agent_names, make_agent
from sentinel_rl.agents.options import discount_for
from sentinel_rl.envs import make_env
from sentinel_rl.errors import UsageError
from sentinel_rl.training.schedule import PLAN_OPTIONS, make_plan

TEXT = (Path(__file__).parents[1] / "reference" / "hyperparameters.tex").read_text()
TASKS = {"cartpole": CARTPOLE, "highway": HIGHWAY}
NAMES = {
    "Discount $\\gamma$": "gamma",
    "Number of atoms": "atoms",
    "Initial $\\epsilon$": "epsilon_start",
    "Final $\\epsilon$": "epsilon_end",
    "Samples from replay buffer": "samples",
    "Replay buffer size": "capacity",
    "Minibatch size": "batch",
    "Regularising parameter $\\lambda$": "lam",
    "Ensemble size $K$": "k",
    "Learning rate": "learning_rate",
}


def printed(task):
    """The lines of a task's table, by their first words."""
    part = TEXT.split(f"% {task} ")[1].split("\n%")[0]
    lines = [line.strip(" \\").split(" & ") for line in part.splitlines() if line.startswith("&")]
    return {name.strip("& "): value.strip("$ \\") for name, value in lines}


def numbers(text):
    return [float(number) for number in re.findall(r"[\d.]+(?:e\d+)?", text)]


@pytest.mark.parametrize("task", TASKS)
def test_numbers_are_those_of_the_table(task):
    table, options = printed(task), options_for(TASKS[task], "sentinel")
    assert {name: options[name] for name in NAMES.values()} == {
        name: float(table[words]) for words, name in NAMES.items()
    }
    assert float(table["Maximum steps in env"]) == TASKS[task].steps
    assert make_env(TASKS[task].env).spec.max_steps == float(table["Maximum episode length"])


def test_supports():
    (limit,) = (float(number) for number in re.findall(r"gamma\^\{(\d+)\}", TEXT))
    pole, road = options_for(CARTPOLE, "sentinel"), options_for(HIGHWAY, "cdqn")
    assert (pole["v_min"], pole["v_max"]) == (0.0, pytest.approx(sum(0.99**step for step in range(int(limit)))))
    assert [road["v_min"], road["v_max"]] == numbers(
        printed("highway")["Return distribution range $[V_{min}, V_{max}]$"]
    )


@pytest.mark.parametrize("task", TASKS)
def test_update_times(task):
    table, options = printed(task), options_for(TASKS[task], "sentinel")
    times = make_plan(2_000, {}, options | {"warmup": 0}).learn_times
    updates, targets = (numbers(table[f"Update {which}ensembles at steps"]) for which in ("", "target "))
    assert times[: len(updates)].tolist() == updates
    assert times[options["target_every"] - 1 :: options["target_every"]][: len(targets)].tolist() == targets


def test_risk_parameters_of_the_baselines():
    table = printed("highway")
    uadqn, cvar = options_for(HIGHWAY, "uadqn"), options_for(HIGHWAY, "vdqn-cvar")
    assert [uadqn["beta"], uadqn["aversion"]] == numbers(table["Risk-sensitive parameters $(\\beta, \\lambda)$"])
    assert cvar["risk"] == "cvar:" + table["Risk-sensitive parameter $\\alpha$"]


# They drive on the highway only.
DRIVERS = ("highway-rule", "highway-search")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("agent", [name for name in agent_names() if name not in ("constant", *DRIVERS)])
def test_every_agent_can_be_made_from_every_preset(agent, preset):
    for task in TASKS.values():
        options = options_for(task, agent, preset)
        made = make_agent(
            agent,
            make_env(task.env).spec,
            **{name: value for name, value in options.items() if name not in PLAN_OPTIONS},
        )
        plan = make_plan(task.steps, made.plan_defaults(task.steps), options)
        assert agent == "random" or plan.epsilon_end == (0.01 if preset == "tuned" else task.shared["epsilon_end"])


LEARNERS = ("sentinel", "cdqn", "vdqn", "vdqn-cvar", "uadqn")


@pytest.mark.parametrize("agent", LEARNERS)
@pytest.mark.parametrize("task", TASKS)
def test_tuned_agents_are_the_librarys_learner(task, agent):
    """Nothing of the paper's tables is left, but for what the library itself has by default, and the tuning found."""
    spec = make_env(TASKS[task].env).spec
    options = options_for(TASKS[task], agent, "tuned")
    assert options == {"preset": "learner"} | ({} if agent == "sentinel" else {"learning_rate_end": 1e-4})
    made, ours = make_agent(agent, spec, **options), make_agent("sentinel", spec)
    plan, wanted = (make_plan(100_000, one.plan_defaults(100_000), {}) for one in (made, ours))
    assert plan == wanted
    assert (plan.learn.period, plan.warmup, plan.epsilon_fraction) == (2, 1_000, 0.02)
    assert made.gamma == discount_for(spec) != HIGHWAY.shared["gamma"] or task == "cartpole"
    for name in ("encoder", "hidden", "batch", "samples", "learning_rate", "target_every", "time_limit"):
        assert getattr(made, name) == getattr(ours, name), name
    assert made.encoder == {"highway": "set", "cartpole": "mlp"}[task]
    assert made.time_limit == "bootstrap"
    if agent in ("sentinel", "cdqn"):
        assert made.support.high == pytest.approx(1 / (1 - made.gamma))


def test_policies_that_learn_nothing_are_the_same_under_every_preset():
    for name, own in (("random", {}), ("random", {"action": 4}), ("highway-rule", {}), ("highway-search", {})):
        env = make_env(HIGHWAY.env).spec
        made = [
            make_agent(
                name,
                env,
                **{
                    option: value
                    for option, value in options_for(HIGHWAY, name, preset, own).items()
                    if option not in PLAN_OPTIONS
                },
            )
            for preset in PRESETS
        ]
        assert made[0] == made[1] == made[2]


def test_presets_differ_where_the_paper_is_open():
    sound, literal = (options_for(HIGHWAY, "sentinel", preset) for preset in ("sound", "literal"))
    assert {name for name in sound | literal if sound.get(name) != literal.get(name)} == {
        READING_OPTION,
        "epsilon_fraction",
    }
    assert options_for(HIGHWAY, "uadqn", "literal")["use_epsilon"]
    assert options_for(HIGHWAY, "sentinel", "sound", {"lam": 0.1})["lam"] == 0.1


def test_unknown_preset():
    with pytest.raises(UsageError, match="'louder': choose one of tuned, sound, literal"):
        options_for(HIGHWAY, "sentinel", "louder")
