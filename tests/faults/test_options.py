"""Whatever users write as an option is taken or refused with a sentence: no traceback, no hang, no exit code 1."""

import contextlib
import functools
import importlib
import io
import math
import random
import re
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from sentinel_rl import Sentinel, evaluate, train
from sentinel_rl.agents.registry import agent_kind, agent_names, make_agent
from sentinel_rl.cli import app, main
from sentinel_rl.cli.options import parse_seeds
from sentinel_rl.envs.handle import resolve_env
from sentinel_rl.errors import SentinelError, UsageError
from sentinel_rl.study import Cell
from sentinel_rl.training import trainer
from sentinel_rl.training.policy import save_policy
from sentinel_rl.training.schedule import PLAN_OPTIONS, make_plan

POLE, ROAD = (resolve_env(name) for name in ("CartPole-v0", "sentinel/highway-v1"))
# More than a machine has: what is accepted must fit.
MEMORY = 80e9
VALUES: list[Any] = [
    *(-1, 0, 1, 2, 10**9, 10**12, 2**63, 10**30, -(10**30), 10**400, True, False, np.int64(3)),
    *(0.5, -0.5, math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, 1e39, 1j, np.float32(0.5), np.complex64(1)),
    *("", "x", "1", "nan", "cvar:0.25", "cvar:0", "triangular", b"x", None, object(), int, len, Path("x"), range(3)),
    *([], {}, (), (1,), (1, 2, 3), ("a", "b"), (0.0, 1.0), (1.0, 0.0), (math.nan, 1.0), (-1e39, 1e39), {"a": 1}),
    *(np.array([1, 2]), np.array(1.5), np.array([]), np.array("x"), [64, 64], (10**9,), (1,) * 1000),
]


# How many of all cases the light tests try, drawn with a fixed seed; the long ones try all.
BUDGETS = [120, pytest.param(None, marks=pytest.mark.slow, id="all")]


def some(cases: list[Any], budget: int | None) -> list[Any]:
    return cases if budget is None else random.Random(17).sample(cases, budget)


def options_of_agents() -> list[tuple[str, str]]:
    return [(agent, name) for agent in agent_names() for name in (*agent_kind(agent).options, *PLAN_OPTIONS)]


def accept(name: str, option: str, value: Any) -> None:
    """Make an agent or a plan with one option; what is accepted can be built, and fits into the memory."""
    if option in PLAN_OPTIONS:
        plan = make_plan(1_000, {}, {option: value})
        assert plan.learn_times.size <= 1_000
        assert all(np.isfinite(number) for number in plan.exploration if number is not None)
        return
    handle = ROAD if name.startswith("highway") else POLE
    agent = make_agent(name, handle, **{**({"action": 0} if name == "constant" else {}), option: value})
    state = jax.eval_shape(lambda key: agent.init(handle.spec, key), jax.random.key(0))
    held = (leaf for leaf in jax.tree.leaves(state) if not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended))
    assert sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in held) < MEMORY


@pytest.mark.attack("class-options")
@pytest.mark.usefixtures("untyped")
@pytest.mark.filterwarnings("ignore::sentinel_rl.errors.SentinelWarning")
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_option_of_every_agent(attacks, budget):
    cases = some([(*each, value) for each in options_of_agents() for value in VALUES], budget)
    broke = []
    for name, option, value in cases:
        try:
            accept(name, option, value)
        except UsageError as refusal:
            if len(str(refusal)) > 1_500:
                broke.append(f"{name} {option}: a message of {len(str(refusal))} characters")
        except Exception as error:
            broke.append(f"{name} {option}={str(value)[:30]}: {type(error).__name__} {str(error)[:80]}")
    attacks(len(cases))
    assert not broke, "\n".join(broke)


@pytest.mark.attack("class-options")
@pytest.mark.usefixtures("untyped")
@pytest.mark.filterwarnings("ignore::sentinel_rl.errors.SentinelWarning")
def test_arguments_of_the_classes_and_functions(attacks, monkeypatch):
    """Before anything is trained."""

    def accepted(*args: Any, **kwargs: Any) -> None:
        raise UsageError("accepted")

    monkeypatch.setattr(trainer, "run_job", accepted)
    small: dict[str, Any] = {"k": 1, "hidden": (4,), "capacity": 10}
    state = make_agent("constant", POLE, action=0)

    def played(**given: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("sentinel_rl.training.evaluation._evaluate", accepted)
            evaluate(state, None, POLE, **given)

    # The network is not drawn again for every value.
    monkeypatch.setattr(jax, "jit", lambda function, **_: lambda *_: None)
    calls = [
        *[
            (name, lambda name=name, **given: Sentinel("MlpPolicy", POLE, **{**small, **given}))
            for name in ("seed", "tensorboard_log", "monitor_dir", "strict_support", "warmup", "epsilon_end")
        ],
        ("policy", lambda policy: Sentinel(policy, POLE, **small)),
        *[
            (name, lambda **given: train("sentinel", POLE, **{"steps": 100, **small, **given}))
            for name in ("steps", "seeds", "points", "evaluate", "evaluate_every", "evaluation_gamma")
        ],
        *[(name, played) for name in ("episodes", "seed", "gamma")],
        *[
            (
                name,
                lambda **given: Cell(**{"agent": "random", "env": "CartPole-v0", "steps": 5, "seeds": (1,), **given}),
            )
            for name in ("steps", "seeds", "points")
        ],
    ]
    broke = []
    for name, call in calls:
        for value in VALUES:
            try:
                call(**{name: value})
            except UsageError:
                pass
            except Exception as error:
                broke.append(f"{name}={str(value)[:30]}: {type(error).__name__} {str(error)[:80]}")
    attacks(len(calls) * len(VALUES))
    assert not broke, "\n".join(broke)


@pytest.mark.attack("class-options")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"warmup": -1}, "warmup must be a whole number of steps from 0"),
        ({"warmup": math.nan}, "warmup must be a whole number"),
        ({"warmup": 1j}, "warmup must be a whole number"),
        ({"adam_eps": math.inf}, "adam_eps must be at least 0 and at most 1e[+]15, got inf"),
        ({"batch": 10**9}, "batch must be a whole number of at least 1 and at most 1000000"),
        ({"atoms": "x"}, "atoms must be a whole number"),
        ({"reward_range": 5}, "reward_range must be the smallest and the largest reward of a step"),
        ({"v_max": 1e308}, "v_max must be a finite number from -1e[+]30"),
        ({"preset": "paper", "v_min": 1.0, "v_max": 1.0 + 1e-9}, "cannot be told apart in float32"),
        ({"seed": 2**32}, "a seed must be a whole number from 0 to 4294967295"),
        ({"seed": -1}, "a seed must be"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_what_was_accepted_in_silence_is_refused(options: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        Sentinel("MlpPolicy", POLE, **options)


@pytest.mark.attack("many-seeds")
@pytest.mark.parametrize(
    "text", ["1000000000", "100001", "9" * 400, "-5", "0", "1,1", "x", "", ",", "1.5", "4294967296,"]
)
def test_absurd_numbers_of_seeds_are_refused_at_once(text: str):
    began = time.perf_counter()
    with pytest.raises(UsageError, match="give how many"):
        parse_seeds(text)
    assert time.perf_counter() - began < 1


def test_many_seeds_are_taken():
    assert len(parse_seeds("1000")) == 1000
    assert parse_seeds("4294967295,") == [2**32 - 1]


TEXTS = [
    *("", "x", "-1", "0", "1", "1.5", "nan", "inf", "-inf", "1e308", "1e400", "1" + "0" * 12, "1" + "0" * 400),
    *("None", "True", "[]", "()", "{}", "(1,", "1,2", "a,b", "'", '"x"', "1j", "b'x'", "../x", "a\x00b", "é", "\u202e"),
    *("--help", "-", "=", "a=b", "cvar:0.25", "[1]*10**9", "9**9**9", "(" * 300, "x" * 5_000, "🦊", "\ud800"),
]
TRAIN = ("train", "--env", "CartPole-v0", "--out", "out")
OPTIONS: dict[tuple[str, ...], tuple[str, ...]] = {
    TRAIN: (
        *("--steps", "--seeds", "--agent", "--k", "--aleatory", "--epistemic", "--lam", "--preset", "--reading"),
        *("--gamma", "--set", "--save-every", "--evaluate-every", "--evaluate", "--env", "--out"),
        *("--env-kwargs", "--wrapper", "--config", "--keep"),
    ),
    ("sweep", "study", "--env", "CartPole-v0"): (
        *("--vary", "--trials", "--env", "--steps", "--seeds", "--agent", "--metric", "--evaluate", "--set"),
        *("--env-kwargs", "--wrapper", "--config", "--seed", ""),
    ),
    ("scenes", "policy.zip"): ("--plot", ""),
    ("plot",): ("--metric", ""),
    ("export", "policy.zip"): ("--onnx", "--stablehlo", "--seed-index", "--aleatory", "--epistemic", ""),
    ("calibrate", "policy.zip"): ("--episodes", "--seed", "--on", "--seed-index", ""),
    ("abstain", "policy.zip"): (
        *("--fallback", "--set", "--on", "--score", "--coverage", "--episodes", "--seed", "--seed-index", ""),
    ),
    ("stress", "policy.zip"): ("--split", "--strengths", "--episodes", "--seed", ""),
    ("eval", "policy.zip"): ("--episodes", "--seed", "--on", "--gamma", "--env", "--set", "--recalibrate", ""),
    ("assess", "policy.zip"): ("--obs", "--seed-index", "--plot", "--recalibrate", ""),
    ("watch", "policy.zip"): (
        *("--episodes", "--seed", "--first", "--seed-index", "--on", "--html", "--save", "--with", "--port", ""),
        *("--gif", "--mp4", "--png", "--capture", "--do", "--avoid", "--decisions", "--width", "--speed"),
    ),
    ("frontier", "policy.zip"): ("--episodes", "--seed", "--risk", "--gain", "--alphas", "--on", ""),
    ("verify",): ("",),
    ("risk", "cvar:0.25"): ("",),
    ("risk",): ("",),
    ("report",): ("", "--readme"),
    ("reproduce", "gauss-mix-cvar", "--quick", "--out", "quick"): (
        *("--runs", "--steps", "--preset", "--seed", "--engine", "--address", "--shard", "--records"),
    ),
    ("reproduce",): ("",),
}
# 9 is what a stub says of a command whose options were taken; 1 is a fault of ours.
ALLOWED = (0, 2, 3, 9, 74)


class Taken(SentinelError):  # noqa: N818 (nothing went wrong)
    """The options were taken: the work itself is tested elsewhere."""

    exit_code = 9


@pytest.fixture
def at_work(tmp_path, monkeypatch):
    """A folder with a policy, where commands stop when their work begins."""

    def taken(*args: Any, **kwargs: Any) -> None:
        raise Taken("taken")

    agent = make_agent("constant", POLE, action=0)
    options = {"action": 0}
    save_policy(
        tmp_path / "policy.zip", agent, agent.init(POLE.spec, jax.random.key(0)), POLE, "constant", options, 0, 5
    )
    (tmp_path / "x").write_text("a,b\n1,2\n3,4\n")
    for module, name in (
        ("training.trainer", "run_job"),
        ("training.evaluation", "_evaluate"),
        ("viewer.record", "play_jax"),
        ("viewer.record", "play_gymnasium"),
        ("api.base", "explain"),
    ):
        monkeypatch.setattr(importlib.import_module(f"sentinel_rl.{module}"), name, taken)
    monkeypatch.setattr("sentinel_paper.cli._reproduce_one", taken)
    monkeypatch.setattr(app, "build", functools.cache(app.build))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def outcome(arguments: list[str]) -> str | None:
    """Run a command; returns what is wrong with its end."""
    out, err, began = io.StringIO(), io.StringIO(), time.perf_counter()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(arguments)
        code: Any = "no exit"
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        code = repr(error)[:100]
    took, told = time.perf_counter() - began, err.getvalue()
    if code in ALLOWED and "Traceback" not in told and "error: unexpected" not in told and took < 10:
        return None
    return f"{[each[:30] for each in arguments]}: {code} after {took:.1f} s: {told[-120:]!r}"


@pytest.mark.attack("command-line")
@pytest.mark.usefixtures("untyped", "at_work")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_option_of_every_command(attacks, budget):
    lines = [
        [*command, *([option, text] if option else [text])]
        for command, options in OPTIONS.items()
        for option in options
        for text in TEXTS
    ]
    lines = some(lines, budget)
    broke = [wrong for line in lines if (wrong := outcome(line))]
    attacks(len(lines))
    assert not broke, "\n".join(broke)


@pytest.mark.attack("command-line")
@pytest.mark.usefixtures("untyped", "at_work")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("budget", BUDGETS)
def test_settings_of_every_agent(attacks, budget):
    drawn = some([(*each, text) for each in options_of_agents() for text in TEXTS], budget)
    lines = [[*TRAIN, "--agent", agent, "--set", f"{name}={text}"] for agent, name, text in drawn]
    broke = [wrong for line in lines if (wrong := outcome(line))]
    attacks(len(lines))
    assert not broke, "\n".join(broke)


def test_the_fuzz_knows_every_command_and_option():
    """A command or an option that is added is attacked as well."""
    import typer.main

    from sentinel_rl.cli.app import build

    exempt = {"demo": "runs for a minute", "doctor": "takes nothing", "cache": "one of two words"}
    group = typer.main.get_command(build())
    known: dict[str, set[str]] = {}
    for command, options in OPTIONS.items():
        known.setdefault(command[0], set()).update(options, (word for word in command if word.startswith("--")))
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        if name in exempt:
            continue
        wanted = {
            option.opts[0] for option in command.params if option.param_type_name == "option" and not option.is_flag
        }
        missing = {option for option in wanted if re.match("--", option)} - known.get(name, set()) - {"--help"}
        assert name in known, f"attack the command {name} too"
        assert not missing - {"--tensorboard", "--csv", "--wandb", "--out"}, f"attack {missing} of {name} too"
