"""What the classes of all agents share: the methods that users of reinforcement learning libraries know."""

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.options import require_known
from sentinel_rl.agents.registry import agent_kind, make_agent
from sentinel_rl.compilation import use_compilation_cache
from sentinel_rl.envs.handle import EnvHandle, EnvLike, SingleEnv, require_sizes, resolve_env
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.explanation import Decision, explain
from sentinel_rl.risk import RiskMeasure
from sentinel_rl.storage.atomic import make_folder
from sentinel_rl.training.callbacks import Callbacks, seen_locals
from sentinel_rl.training.episodes import MONITOR, write_monitor
from sentinel_rl.training.host_training import HostTraining
from sentinel_rl.training.policy import SavedPolicy, load_policy, save_policy
from sentinel_rl.training.result import Result
from sentinel_rl.training.schedule import LARGEST_STEP, PLAN_OPTIONS, make_plan, require_seed, require_seeds
from sentinel_rl.training.sinks import ConsoleSink, Logger, Sink, TensorBoardSink
from sentinel_rl.training.trainer import Job, checked_plan, run_job

# Options of the classes that are neither the agent's nor the plan's.
REPORT_OPTIONS = ("tensorboard_log", "monitor_dir", "strict_support", "verbose")


# SB3's names. Which networks an agent has is its option ``encoder``, by default chosen by what is observed.
POLICIES = ("MlpPolicy", "CnnPolicy", "MultiInputPolicy")


class Learner:
    """An agent on an environment.

    Args:
        policy: ``"MlpPolicy"``, ``"CnnPolicy"`` or ``"MultiInputPolicy"``, which all mean the same: the argument is
            where SB3's users expect it, and the networks are chosen by what is observed (option ``encoder``).
        env: a Gymnasium name or environment with Discrete actions, a vector of such
            (``gymnasium.make_vec``), or a JAX environment. A name that has a JAX twin trains on the twin, compiled
            whole. An `EnvSpec` makes an agent that cannot learn.
        seed: of all random numbers.
        tensorboard_log: folder for TensorBoard's scalars; needs the package tensorboardX.
        monitor_dir: folder for ``monitor.csv``, the episodes of training in SB3's format.
        strict_support: stop with an error where returns do not fit into the support, instead of warning.
        verbose: 1 prints the scalars while training.
        options: of the agent, and of the plan: ``learn_every`` (steps, or ``"triangular"``), ``warmup``,
            ``epsilon_start``, ``epsilon_end``, ``epsilon_fraction``.
    """

    # The name of the agent, see `sentinel_rl.agents.registry`.
    kind: ClassVar[str]

    def __init__(
        self,
        policy: str,
        env: EnvLike,
        seed: int = 0,
        *,
        tensorboard_log: str | Path | None = None,
        monitor_dir: str | Path | None = None,
        strict_support: bool = False,
        verbose: int = 0,
        **options: Any,
    ):
        if str(policy) not in POLICIES:
            raise UsageError(f"unknown policy {policy!r}: choose one of {', '.join(map(repr, POLICIES))}")
        require_known(options, (*agent_kind(self.kind).options, *PLAN_OPTIONS), (*REPORT_OPTIONS, "seed"))
        seed = require_seed(seed)
        self._set_up(seed, dict(options), resolve_env(env), tensorboard_log, monitor_dir, strict_support, verbose)
        init_key = jax.random.split(jax.random.key(seed), 3)[0]
        self.state: Any = jax.jit(lambda key: self.agent.init(self.spec, key))(init_key)

    def _set_up(
        self,
        seed: int,
        options: dict[str, Any],
        handle: EnvHandle,
        tensorboard_log: str | Path | None = None,
        monitor_dir: str | Path | None = None,
        strict_support: bool = False,
        verbose: int = 0,
    ) -> None:
        _require_reports(tensorboard_log, monitor_dir, strict_support, verbose)
        use_compilation_cache()
        self.seed, self.options, self.handle = seed, options, handle
        self.tensorboard_log, self.monitor_dir = tensorboard_log, monitor_dir
        self.strict_support, self.verbose = strict_support, verbose
        self.agent: Agent = self._make_agent(options)
        make_plan(LARGEST_STEP, self.agent.plan_defaults(LARGEST_STEP), options)  # what is wrong is told now
        self.logger, self.num_timesteps, self._draws = Logger(), 0, 0
        self.result: Result | None = None

    def learn(self, total_timesteps: int, callback: Any = None, progress_bar: bool = False) -> Self:
        """Train from the seed for exactly this many steps; ``result`` then has the learning curves.

        Args:
            total_timesteps: environment steps.
            callback: a function ``callback(locals, globals)``, an object like SB3's callbacks, or a list of such; it
                sees ``rewards``, ``dones`` and ``infos`` of every step, made one by one, and stops with False.
            progress_bar: show steps, episodes and recent return.
        """
        job = self._job(total_timesteps, [self.seed])
        if self.num_timesteps:
            warnings.warn(
                "learn() begins again from the seed: what was learnt before is given up", SentinelWarning, stacklevel=2
            )
        callbacks = Callbacks(callback, self)
        self.logger = Logger(self._sinks(), self.seed)
        running: list[Any] = []

        def on_step(happened: Any, actions: np.ndarray, metrics: list[Any], ended: Sequence[Any]) -> bool:
            run = running[0].run
            self.state, self.num_timesteps = run.state, run.t
            seen = seen_locals(self, happened, actions + self.handle.first_action, ended)
            return callbacks.step(seen, updated=bool(metrics))

        def watch(training: Any) -> None:
            running[:] = [training]
            callbacks.start({"self": self, "total_timesteps": total_timesteps})

        try:
            self.result = run_job(
                job,
                progress=progress_bar or None,
                loggers=[self.logger],
                on_step=on_step if callbacks else None,
                watch=watch,
            )
        finally:
            if running:
                self._write_monitors(running[0].history, [self.seed])
                if isinstance(running[0], HostTraining):
                    self.state, self.num_timesteps = running[0].run.state, running[0].t
        self.state, self.num_timesteps = self.result.agent_states[0], self.result.steps
        callbacks.end()
        return self

    def learn_many(self, total_timesteps: int, seeds: Iterable[int], progress_bar: bool = False) -> list[Self]:
        """Train one agent per seed, all at once on a JAX environment; this agent stays as it is.

        Every agent that is returned has the `result` of all runs, with their learning curves.
        """
        seeds = require_seeds(list(seeds))
        if not self.handle.is_jax:
            raise UsageError(f"learn_many needs an environment in JAX, got {self.spec.name}")
        loggers = [Logger(sinks, seed) for sinks in [self._sinks()] for seed in seeds]
        running: list[Any] = []
        job = self._job(total_timesteps, seeds)
        try:
            result = run_job(job, progress=progress_bar or None, loggers=loggers, watch=running.append)
        finally:
            if running:
                self._write_monitors(running[0].history, seeds)
        for seed, why in result.failures.items():
            warnings.warn(f"the agent of seed {seed} is of no use: {why}", SentinelWarning, stacklevel=2)
        return [
            self._copy(seed=seed, state=state, num_timesteps=result.steps, logger=logger, result=result)
            for seed, state, logger in zip(seeds, result.agent_states, loggers, strict=True)
        ]

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray | np.integer[Any], Any]:
        """Choose actions for one observation or a batch; not `deterministic` explores as at the end of training.

        The action at an observation does not depend on the others of a batch. A policy that draws its actions, such as
        a random one, draws new ones with every call.
        """
        obs, single = self.handle.batch(observation)
        fresh = not deterministic or self.agent.stochastic
        self._draws += fresh
        key = jax.random.fold_in(jax.random.key(self.seed), self._draws if fresh else 0)
        if deterministic:
            chosen = _in_blocks(_greedy, self.agent, self.state, obs, key)
        else:
            defaults = {"epsilon_end": 0.05, **self.agent.plan_defaults(max(self.num_timesteps, 1))}
            epsilon = float(self.options.get("epsilon_end", defaults["epsilon_end"]))
            chosen = _in_blocks(_act, self.agent, self.state, obs, key, jnp.float32(epsilon))
        actions = np.asarray(chosen, np.int64) + self.handle.first_action
        return (actions[0] if single else actions), state

    def assess(self, observation: Any) -> Decision:
        """Explain the decision at one observation."""
        obs, single = self.handle.batch(observation)
        if not single:
            raise UsageError(f"assess explains one observation, got a batch of shape {np.shape(observation)}")
        return explain(self.agent, self.state, obs[0], self.handle)

    def save(self, path: str | Path) -> Path:
        """Save what is needed to act, as one small file without pickle; a bare name gets ``.zip``.

        A risk measure of your own that has no registered name cannot be written down: a warning says what `load` will
        need.
        """
        about = self.handle, self.kind, self.options, self.seed, self.num_timesteps
        return save_policy(path, self.agent, self.state, *about)

    @classmethod
    def load(cls, path: str | Path, env: EnvLike = None, **settings: Any) -> Self:
        """Load a saved agent; with an environment, it must be of the size the agent was trained for.

        Args:
            path: of the file that `save` wrote.
            env: to learn in, or to check against; without one the agent can act and explain.
            settings: ``tensorboard_log``, ``monitor_dir``, ``strict_support`` and ``verbose``; and options of the
                agent that the file could not hold, such as ``aleatory=MyMeasure(0.3)``.

        Raises:
            IncompatibleError: for another environment size, a damaged or a foreign file.
            UsageError: when a risk measure is needed that the file could not hold.
        """
        reporting = {name: settings.pop(name) for name in REPORT_OPTIONS if name in settings}
        require_known(settings, agent_kind(cls.kind).options, REPORT_OPTIONS)
        return cls.from_saved(load_policy(path, **settings), str(path), env, **reporting)

    @classmethod
    def from_saved(cls, saved: SavedPolicy, where: str, env: EnvLike = None, **reporting: Any) -> Self:
        """The agent of a policy that was loaded; `where` names its file in messages."""
        if saved.kind != cls.kind:
            raise IncompatibleError(
                f"{where} holds an agent of kind {saved.kind!r}, not {cls.kind!r}: load it with its class"
            )
        loaded = cls.__new__(cls)
        with warnings.catch_warnings():  # what was worth a warning was warned about before it was trained
            warnings.simplefilter("ignore", SentinelWarning)
            loaded._set_up(saved.seed, saved.options, saved.handle, **reporting)
        if env is not None:
            loaded.handle = resolve_env(env)
            require_sizes(loaded.handle.spec, saved.handle.spec, where)
        loaded.agent, loaded.state, loaded.num_timesteps = saved.agent, saved.state, saved.steps
        return loaded

    @property
    def env(self) -> Any:
        """The environment it learns in, a JAX or a Gymnasium one, or None."""
        return self.handle.env

    @property
    def spec(self) -> EnvSpec:
        """The sizes of the environment."""
        return self.handle.spec

    @property
    def observation_space(self) -> spaces.Space[Any]:
        """What the agent sees."""
        return self.handle.observation_space

    @property
    def action_space(self) -> "spaces.Discrete[Any]":
        """What the agent can do."""
        return self.handle.action_space

    def get_env(self) -> Any:
        """The environment with Gymnasium's face, or the vector of them, or None."""
        env = self.handle.gymnasium
        return SingleEnv(env) if isinstance(env, gymnasium.Env) else env

    def get_vec_normalize_env(self) -> Any:
        """None: observations are not normalised. SB3's callbacks ask."""
        return None

    def _job(self, steps: int, seeds: list[int]) -> Job:
        if self.handle.env is None:
            name = type(self).__name__
            raise UsageError(f"this agent has no environment to learn in: give it one, {name}('MlpPolicy', env)")
        return Job(
            agents=[self.agent] * len(seeds),
            handle=self.handle,
            plan=checked_plan(steps, self.agent, self.options),
            seeds=seeds,
            gamma=self.spec.gamma,
            reports=False,
            strict=self.strict_support,
            kind=self.kind,
            options=self.options,
        )

    def _sinks(self) -> list[Sink]:
        sinks: list[Sink] = []
        if self.verbose > 0:
            sinks.append(ConsoleSink())
        if self.tensorboard_log is not None:
            sinks.append(TensorBoardSink(self.tensorboard_log, type(self).__name__))
        return sinks

    def _write_monitors(self, history: Any, seeds: Sequence[int]) -> None:
        """Write the episodes down, however training ended."""
        if self.monitor_dir is None:
            return
        folder = make_folder(Path(self.monitor_dir))
        for run, seed in enumerate(seeds):
            name = MONITOR if len(seeds) == 1 else f"seed_{seed}.{MONITOR}"
            write_monitor(folder / name, history.table().of_run(run), self.spec.name, history.started)

    def _copy(self, **changes: Any) -> Self:
        """Another agent that shares what is not changed."""
        other = copy.copy(self)
        other.__dict__.update(changes)
        return other

    def _make_agent(self, options: Mapping[str, Any]) -> Agent:
        own = {name: value for name, value in options.items() if name not in PLAN_OPTIONS}
        return make_agent(self.kind, self.spec, **own)


def _require_reports(tensorboard_log: object, monitor_dir: object, strict_support: object, verbose: object) -> None:
    for name, folder in (("tensorboard_log", tensorboard_log), ("monitor_dir", monitor_dir)):
        if folder is not None and not (isinstance(folder, str | Path) and str(folder)):
            raise UsageError(f"{name} must be a folder, or None, got {folder!r}")
    if not isinstance(strict_support, bool):
        raise UsageError(f"strict_support must be true or false, got {strict_support!r}")
    if not isinstance(verbose, int):
        raise UsageError(f"verbose must be 0 or 1, got {verbose!r}")


def with_measures(options: Mapping[str, Any], **changed: str | RiskMeasure | None) -> dict[str, Any]:
    """Options with other risk measures, where some are given."""
    return {**options, **{name: value for name, value in changed.items() if value is not None}}


# A program is compiled for every number of observations, and kept: batches are cut into blocks, and filled up to powers
# of two, so that there are at most eleven.
_BLOCK = 1024


def _in_blocks(
    choose: Callable[..., Any], agent: Agent, state: Any, obs: np.ndarray, key: Any, *more: Any
) -> np.ndarray:
    """The actions at all observations; the key of each depends on its place alone."""
    chosen = []
    for first in range(0, len(obs), _BLOCK):
        part = obs[first : first + _BLOCK]
        room = 1 << (len(part) - 1).bit_length()
        filled = np.concatenate([part, np.repeat(part[-1:], room - len(part), axis=0)])
        chosen.append(np.asarray(choose(agent, state, filled, key, np.int32(first), *more))[: len(part)])
    return np.concatenate(chosen)


def _keys(key: Any, first: Any, count: int) -> Any:
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, first + jnp.arange(count))


@jax.jit
def _act(agent: Agent, state: Any, obs: Any, key: Any, first: Any, epsilon: Any) -> Any:
    return jax.vmap(lambda x, key: agent.act(state, x, epsilon, key))(obs, _keys(key, first, len(obs)))


@jax.jit
def _greedy(agent: Agent, state: Any, obs: Any, key: Any, first: Any) -> Any:
    return jax.vmap(lambda x, key: agent.greedy(state, x, key))(obs, _keys(key, first, len(obs)))
