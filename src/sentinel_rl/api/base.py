"""What the classes of all agents share: the methods that users of reinforcement learning libraries know."""

import abc
import copy
import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from sentinel_rl.agents.agent import Accountable
from sentinel_rl.agents.catalog import AGENTS
from sentinel_rl.agents.options import require_known
from sentinel_rl.compilation import use_compilation_cache
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.explanation import Decision
from sentinel_rl.risk import RiskMeasure
from sentinel_rl.storage.archive import load_archive, read_archive_manifest, save_archive
from sentinel_rl.storage.configuration import restored
from sentinel_rl.training.callbacks import Callbacks, seen_locals
from sentinel_rl.training.environment import Alone, Place, WorldLike, find_place, host_world, require_sizes
from sentinel_rl.training.episodes import EpisodeLog
from sentinel_rl.training.host import HostRun
from sentinel_rl.training.host_loop import train_on_host
from sentinel_rl.training.loop import Training, train
from sentinel_rl.training.progress import progress_bar as showing
from sentinel_rl.training.schedule import COURSE_OPTIONS, Plan, make_plan
from sentinel_rl.training.sinks import Logger
from sentinel_rl.training.watch import REPORT_OPTIONS, Reports, looking, state_of


class Learner(abc.ABC):
    """An agent on an environment.

    Args:
        policy: ``"MlpPolicy"``, for the sake of habit.
        env: a Gymnasium name or environment with a Box observation and Discrete actions, a vector of such
            (``gymnasium.make_vec``), or a JAX environment. A name that has a JAX twin trains on the twin, compiled
            whole. An `EnvSpec` makes an agent that cannot learn.
        seed: of all random numbers.
        tensorboard_log: folder for TensorBoard's scalars; needs the package tensorboardX.
        monitor_dir: folder for ``monitor.csv``, the episodes of training in SB3's format.
        strict_support: stop with an error where returns do not fit into the support, instead of warning.
        verbose: 1 prints the scalars while training.
        options: of the agent, and of the course: ``learn_every`` (steps, or ``"triangular"``), ``warmup``,
            ``epsilon_start``, ``epsilon_end``, ``epsilon_fraction``.
    """

    # The name of the agent in `AGENTS`.
    kind: ClassVar[str]

    def __init__(
        self,
        policy: str,
        env: WorldLike,
        seed: int = 0,
        *,
        tensorboard_log: str | Path | None = None,
        monitor_dir: str | Path | None = None,
        strict_support: bool = False,
        verbose: int = 0,
        **options: Any,
    ):
        if policy != "MlpPolicy":
            raise UsageError(f"unknown policy {policy!r}: 'MlpPolicy' is the one there is")
        require_known(options, (*AGENTS[self.kind].options, *COURSE_OPTIONS), (*REPORT_OPTIONS, "seed"))
        self.seed, self.options, self.place = seed, options, find_place(env)
        use_compilation_cache()
        self.reports = Reports(tensorboard_log, monitor_dir, strict_support, verbose, type(self).__name__)
        self.agent: Any = self._make_agent(options)
        self.logger = Logger()
        self.num_timesteps, self._draws = 0, 0
        init_key = jax.random.split(jax.random.key(seed), 3)[0]
        self.state: Any = jax.jit(lambda key: self.agent.init(self.spec, key))(init_key)

    def learn(self, total_timesteps: int, callback: Any = None, progress_bar: bool = False) -> Self:
        """Train from the seed for exactly this many steps.

        Args:
            total_timesteps: environment steps.
            callback: a function ``callback(locals, globals)``, an object like SB3's callbacks, or a list of such; it
                sees ``rewards``, ``dones`` and ``infos`` of every step, made one by one, and stops with False.
            progress_bar: show steps, episodes and recent return.
        """
        plan = self._plan(total_timesteps)
        if self.num_timesteps:
            warnings.warn("learn() starts anew: what was learnt before is given up", SentinelWarning, stacklevel=2)
        callbacks = Callbacks(callback, self)
        if callbacks or self.place.stepped_from_python:
            self._learn_step_by_step(plan, callbacks, progress_bar)
        else:
            self.state = self._train_many(plan, [self.seed], progress_bar)[0]
            self.num_timesteps = plan.steps
        return self

    def learn_many(self, total_timesteps: int, seeds: Iterable[int], progress_bar: bool = False) -> list[Self]:
        """Train one agent per seed, all at once on a JAX environment; this agent stays as it is."""
        seeds = list(seeds)
        if self.place.stepped_from_python or not seeds:
            raise UsageError(f"learn_many needs seeds and an environment in JAX, got {seeds} and {self.spec.name}")
        plan = self._plan(total_timesteps)
        states = self._train_many(plan, seeds, progress_bar)
        return [
            self._copy(seed=seed, state=state, num_timesteps=plan.steps, logger=Logger())
            for seed, state in zip(seeds, states, strict=True)
        ]

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray | np.integer[Any], Any]:
        """Choose actions for one observation or a batch; not `deterministic` explores as at the end of training."""
        obs, single = self.place.batch(observation)
        self._draws += not deterministic
        draw = jax.random.fold_in(jax.random.key(self.seed), 0 if deterministic else self._draws)
        keys = jax.random.split(draw, len(obs))
        if deterministic:
            chosen = _greedy(self.agent, self.state, obs, keys)
        else:
            epsilon = float(self.options.get("epsilon_end", 0.05))
            chosen = _act(self.agent, self.state, obs, jnp.float32(epsilon), keys)
        actions = np.asarray(chosen, np.int64) + self.place.first_action
        return (actions[0] if single else actions), state

    def assess(self, observation: Any) -> Any:
        """Explain the decision at one observation: a `Decision`."""
        obs, single = self.place.batch(observation)
        if not single:
            raise UsageError(f"assess explains one observation, got a batch of shape {np.shape(observation)}")
        return self._explain(obs[0])

    @abc.abstractmethod
    def _explain(self, obs: np.ndarray) -> Decision:
        """What the agent can tell of its decision, and what it cannot."""

    def save(self, path: str | Path) -> Path:
        """Save what is needed to act, as one small file without pickle; a bare name gets ``.zip``."""
        about = {
            "agent": self.kind,
            "options": {k: str(v) if isinstance(v, RiskMeasure) else v for k, v in self.options.items()},
            "spec": dataclasses.asdict(self.spec),
            "obs_shape": self.place.obs_shape,
            "first_action": self.place.first_action,
            "seed": self.seed,
            "num_timesteps": self.num_timesteps,
        }
        return save_archive(Path(path) if Path(path).suffix else f"{path}.zip", self.state.online, about)

    @classmethod
    def load(cls, path: str | Path, env: WorldLike = None, **settings: Any) -> Self:
        """Load a saved agent; with an environment, it must be of the size the agent was trained for.

        Args:
            path: of the file that `save` wrote.
            env: to learn in, or to check against; without one the agent can act and explain.
            settings: ``tensorboard_log``, ``monitor_dir``, ``strict_support`` and ``verbose``.

        Raises:
            IncompatibleError: for another environment size, a damaged or a foreign file.
        """
        about = read_archive_manifest(path).about
        if "spec" not in about:
            raise IncompatibleError(f"{path} holds no agent: give a file that {cls.__name__}.save wrote")
        kind = about.get("agent", "sentinel")  # the first files had only this one
        if kind != cls.kind:
            raise IncompatibleError(f"{path} holds an agent of kind {kind!r}, not {cls.kind!r}: load it with its class")
        saved = EnvSpec(**restored(about["spec"]))
        place = Place(saved, None, tuple(about["obs_shape"]), about["first_action"])
        if env is not None:
            place = find_place(env)
            require_sizes(place.spec, saved, str(path))
        with warnings.catch_warnings():  # what was worth a warning was warned about before it was trained
            warnings.simplefilter("ignore", SentinelWarning)
            loaded = cls("MlpPolicy", saved, about["seed"], **settings, **restored(about["options"]))
        networks, _ = load_archive(path, loaded.state.online)
        loaded.state = dataclasses.replace(loaded.state, online=networks)
        loaded.place, loaded.num_timesteps = place, about["num_timesteps"]
        return loaded

    @property
    def env(self) -> Any:
        """The environment it learns in, a JAX or a Gymnasium one, or None."""
        return self.place.env

    @property
    def spec(self) -> EnvSpec:
        """The sizes of the environment."""
        return self.place.spec

    @property
    def observation_space(self) -> spaces.Space[Any]:
        """What the agent sees."""
        return self.place.observation_space

    @property
    def action_space(self) -> "spaces.Discrete[Any]":
        """What the agent can do."""
        return self.place.action_space

    def get_env(self) -> Any:
        """The environment with Gymnasium's face, or the vector of them, or None."""
        env = self.place.gymnasium
        return Alone(env) if isinstance(env, gymnasium.Env) else env

    def get_vec_normalize_env(self) -> Any:
        """None: observations are not normalised. SB3's callbacks ask."""
        return None

    def _plan(self, steps: int) -> Plan:
        if self.place.env is None:
            name = type(self).__name__
            raise UsageError(f"this agent has no environment to learn in: give it one, {name}('MlpPolicy', env)")
        plan = make_plan(steps, self.agent.samples, self.options)
        if plan.learn_times.size == 0:
            warnings.warn(
                f"0 updates would be made in {steps} steps: train longer than the warm-up of {plan.warmup}, "
                f"or learn more often",
                SentinelWarning,
                stacklevel=3,
            )
        return plan

    def _train_many(self, plan: Plan, seeds: list[int], shown: bool) -> list[Any]:
        training = Training([self.agent] * len(seeds), self.place.env, plan, seeds)
        with (
            self.reports.watching(self.agent, self.spec.name, seeds, training.logs) as watches,
            showing(plan.steps, len(seeds), shown) as show,
        ):
            self.logger = watches[0].logger
            train(training, report=looking(show, watches, partial(state_of, training.groups)))
        for run, failure in training.failures.items():
            warnings.warn(f"the agent of seed {seeds[run]} is of no use: {failure}", SentinelWarning, stacklevel=4)
        return training.agent_states()

    def _learn_step_by_step(self, plan: Plan, callbacks: Callbacks, shown: bool) -> None:
        run, log = HostRun(self.agent, host_world(self.place, self.seed), plan, self.seed), EpisodeLog()
        self.state, self.num_timesteps = run.state, 0

        def after_step(happened: Any, actions: np.ndarray, metrics: list[Any], ended: Sequence[Any]) -> bool:
            self.state, self.num_timesteps = run.state, run.t
            seen = seen_locals(self, happened, actions + self.place.first_action, ended)
            return callbacks.step(seen, updated=bool(metrics))

        with (
            self.reports.watching(self.agent, self.spec.name, [self.seed], [log]) as watches,
            showing(plan.steps, shown=shown) as show,
        ):
            self.logger = watches[0].logger
            callbacks.start({"self": self, "total_timesteps": plan.steps})
            look = looking(show, watches, lambda _: run.state)
            try:
                train_on_host(run, log, look, after_step if callbacks else None)
            finally:
                self.state, self.num_timesteps = run.state, run.t
            callbacks.end()

    def _copy(self, **changes: Any) -> Self:
        """Another agent that shares what is not changed."""
        other = copy.copy(self)
        other.__dict__.update(changes)
        return other

    def _make_agent(self, options: Mapping[str, Any]) -> Any:
        own = {name: value for name, value in options.items() if name not in COURSE_OPTIONS}
        return AGENTS[self.kind].make(self.spec, **own)


@jax.jit
def _act(agent: Accountable, state: Any, obs: Any, epsilon: Any, keys: Any) -> Any:
    return jax.vmap(lambda x, key: agent.act(state, x, epsilon, key))(obs, keys)


@jax.jit
def _greedy(agent: Accountable, state: Any, obs: Any, keys: Any) -> Any:
    return jax.vmap(lambda x, key: agent.greedy(state, x, key))(obs, keys)
