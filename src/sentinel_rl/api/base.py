"""What the classes of all agents share: the methods that users of reinforcement learning libraries know."""

import copy
import dataclasses
import functools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from sentinel_rl.agents.agent import Agent
from sentinel_rl.agents.options import require_known
from sentinel_rl.agents.recalibration import Recalibrated, Recalibration
from sentinel_rl.agents.registry import agent_kind, make_agent
from sentinel_rl.api.choosing import act, greedy, in_blocks
from sentinel_rl.api.sb3_face import SB3Face
from sentinel_rl.api.sb3_names import require_device, understood
from sentinel_rl.compilation import use_compilation_cache
from sentinel_rl.envs.handle import EnvHandle, EnvLike, SingleEnv, require_sizes, resolve_env
from sentinel_rl.envs.sb3_vector import SB3Vector
from sentinel_rl.envs.spec import EnvSpec
from sentinel_rl.errors import IncompatibleError, SentinelWarning, UsageError
from sentinel_rl.explanation import Decision, explain
from sentinel_rl.risk import RiskMeasure
from sentinel_rl.storage.atomic import make_folder
from sentinel_rl.training.callbacks import Callbacks, seen_locals
from sentinel_rl.training.episodes import MONITOR, EpisodeTable, write_monitor
from sentinel_rl.training.host_training import HostTraining
from sentinel_rl.training.job import Job, checked_plan
from sentinel_rl.training.policy import SavedPolicy, load_policy, save_policy
from sentinel_rl.training.result import Result
from sentinel_rl.training.schedule import LARGEST_STEP, PLAN_OPTIONS, make_plan, require_seed, require_seeds
from sentinel_rl.training.sinks import ConsoleSink, Logger, LoggerSink, Sink, TensorBoardSink
from sentinel_rl.training.standing import Standing
from sentinel_rl.training.trainer import run_job

# Options of the classes that are neither the agent's nor the plan's.
REPORT_OPTIONS = ("tensorboard_log", "monitor_dir", "strict_support", "verbose", "device")


# SB3's names. Which networks an agent has is its option ``encoder``, by default chosen by what is observed.
POLICIES = ("MlpPolicy", "CnnPolicy", "MultiInputPolicy")


class Learner(SB3Face):
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
        device: ``"auto"``; another one must be what JAX computes on, which is chosen before Python starts.
        options: of the agent, and of the plan: ``learn_every`` (steps, or ``"triangular"``), ``warmup``,
            ``epsilon_start``, ``epsilon_end``, ``epsilon_fraction``. SB3's names are understood
            (`sentinel_rl.api.sb3_names`).
    """

    # The name of the agent, see `sentinel_rl.agents.registry`.
    kind: ClassVar[str]

    def __init__(
        self,
        policy: str,
        env: EnvLike,
        seed: int | None = 0,
        *,
        tensorboard_log: str | Path | None = None,
        monitor_dir: str | Path | None = None,
        strict_support: bool = False,
        verbose: int = 0,
        device: str = "auto",
        **options: Any,
    ):
        if str(policy) not in POLICIES:
            raise UsageError(f"unknown policy {policy!r}: choose one of {', '.join(map(repr, POLICIES))}")
        handle, known = resolve_env(env), (*agent_kind(self.kind).options, *PLAN_OPTIONS)
        own = understood(options, known, functools.partial(self._resolved, handle.spec))
        require_known(own, known, (*REPORT_OPTIONS, "seed"))
        seed = 0 if seed is None else require_seed(seed)
        self._set_up(seed, own, handle, tensorboard_log, monitor_dir, strict_support, verbose, device)
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
        device: str = "auto",
    ) -> None:
        _require_reports(tensorboard_log, monitor_dir, strict_support, verbose)
        use_compilation_cache()
        require_device(device)
        self.device = jax.default_backend()
        self.seed, self.options, self.handle = seed, options, handle
        self.tensorboard_log, self.monitor_dir = tensorboard_log, monitor_dir
        self.strict_support, self.verbose = strict_support, verbose
        self.agent: Agent = self._make_agent(options)
        make_plan(LARGEST_STEP, self.agent.plan_defaults(LARGEST_STEP), options)  # what is wrong is told now
        self.logger, self.num_timesteps, self._draws = Logger(), 0, 0
        self.result: Result | None = None
        self._standing = None
        # Episodes of trainings before the counter began again.
        self._earlier: list[EpisodeTable] = []
        self._acts_only, self._given_logger = None, None

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int | None = None,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Train for exactly this many steps; ``result`` then has the learning curves.

        An agent that has learnt before goes on with its networks, optimiser and replay.

        Args:
            total_timesteps: environment steps, beside those of calls before.
            callback: a function ``callback(locals, globals)``, an object like SB3's callbacks, or a list of such; it
                sees ``rewards``, ``dones`` and ``infos`` of every step, made one by one, and stops with False.
            log_interval: episodes between two log entries, at least; they are made between chunks of steps.
            tb_log_name: what the folders of TensorBoard's files begin with; the name of the class by default.
            reset_num_timesteps: begin again with ``num_timesteps``, the warm-up, epsilon, the learning rate and the
                curves. Otherwise they go on: epsilon and the learning rate stay where the first call led them.
            progress_bar: show steps, episodes and recent return.

        Raises:
            UsageError: for an agent without an environment, or one that was loaded from a file without its training.
        """
        start = None if self._standing is None else self._standing.in_env(self.handle)
        if start is not None and reset_num_timesteps:
            start = start.reset()
        job = self._job(total_timesteps, [self.seed], start)
        callbacks = Callbacks(callback, self)
        if start is not None and reset_num_timesteps and self.result is not None:
            self._earlier.append(self.result.table)
        self.num_timesteps = 0 if start is None else start.t
        logger = Logger(self._sinks(tb_log_name), self.seed)
        self.logger = logger if self._given_logger is None else self._given_logger
        running: list[Any] = []

        def on_step(happened: Any, actions: np.ndarray, metrics: list[Any], ended: Sequence[Any]) -> bool:
            run = running[0].run
            self.state, self.num_timesteps = run.state, run.t
            seen = seen_locals(self, happened, actions + self.handle.first_action, ended)
            return callbacks.step(seen, updated=bool(metrics))

        def watch(training: Any) -> None:
            running[:] = [training]
            callbacks.start({"self": self, "total_timesteps": job.plan.steps})

        try:
            self.result = run_job(
                job,
                progress=progress_bar or None,
                loggers=[logger],
                on_step=on_step if callbacks else None,
                watch=watch,
                log_interval=log_interval,
            )
        finally:
            if running:
                self._write_monitors(running[0].history, [self.seed])
                if isinstance(running[0], HostTraining):
                    self._stand(running[0].standing())
        self._stand(running[0].standing())
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
            self._copy(
                seed=seed,
                state=state,
                num_timesteps=result.steps,
                logger=logger,
                result=result,
                _standing=Standing(state, result.steps, horizon=result.steps),
                _earlier=[],
            )
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
            chosen = in_blocks(greedy, self.agent, self.state, obs, key)
        else:
            defaults = {"epsilon_end": 0.05, **self.agent.plan_defaults(max(self.num_timesteps, 1))}
            epsilon = float(self.options.get("epsilon_end", defaults["epsilon_end"]))
            chosen = in_blocks(act, self.agent, self.state, obs, key, jnp.float32(epsilon))
        actions = np.asarray(chosen, np.int64) + self.handle.first_action
        return (actions[0] if single else actions), state

    def assess(self, observation: Any) -> Decision:
        """Explain the decision at one observation."""
        obs, single = self.handle.batch(observation)
        if not single:
            raise UsageError(f"assess explains one observation, got a batch of shape {np.shape(observation)}")
        return explain(self.agent, self.state, obs[0], self.handle)

    def recalibrated(self, recalibration: Recalibration) -> Self:
        """The same trained agent, acting and explaining itself with corrected laws; `save` leaves the map out.

        Args:
            recalibration: a map that `sentinel_rl.calibration.calibrate` fitted.

        Raises:
            UsageError: for an agent without laws.
        """
        return self._copy(agent=Recalibrated(self.agent, recalibration))

    def save(self, path: str | Path, include: str | None = None) -> Path:
        """Save what is needed to act, as one small file without pickle; a bare name gets ``.zip``.

        A risk measure of your own that has no registered name cannot be written down: a warning says what `load` will
        need.

        Args:
            path: of the file.
            include: ``"training"`` adds what is needed to go on learning: optimiser, replay, the counter, the state of
                a JAX environment and the learning curves. The file then is as large as the replay.

        Raises:
            UsageError: when training shall be included, and this agent has none.
        """
        about = self.handle, self.kind, self.options, self.seed, self.num_timesteps
        if include not in (None, "training"):
            raise UsageError(f"include is None or 'training', got {include!r}")
        if include is None:
            return save_policy(path, self.agent, self.state, *about)
        if self._acts_only is not None:
            raise UsageError(f"the training cannot be saved: {self._acts_only}")
        return save_policy(path, self.agent, self.state, *about, training=self._standing or Standing(self.state))

    @classmethod
    def load(cls, path: str | Path, env: EnvLike = None, *, include: str | None = None, **settings: Any) -> Self:
        """Load a saved agent; with an environment, it must be of the size the agent was trained for.

        An agent whose training was saved, too (``save(path, include="training")``), goes on learning.

        Args:
            path: of the file that `save` wrote.
            env: to learn in, or to check against; without one the agent can act and explain.
            include: ``"training"`` refuses a file without it.
            settings: ``tensorboard_log``, ``monitor_dir``, ``strict_support`` and ``verbose``; and options of the
                agent that the file could not hold, such as ``aleatory=MyMeasure(0.3)``.

        Raises:
            IncompatibleError: for another environment size, a damaged or a foreign file, or one without its training.
            UsageError: when a risk measure is needed that the file could not hold.
        """
        reporting = {name: settings.pop(name) for name in REPORT_OPTIONS if name in settings}
        require_known(settings, agent_kind(cls.kind).options, REPORT_OPTIONS)
        loaded = cls.from_saved(load_policy(path, **settings), str(path), env, **reporting)
        if include not in (None, "training"):
            raise UsageError(f"include is None or 'training', got {include!r}")
        if include == "training" and loaded._acts_only is not None:
            raise IncompatibleError(loaded._acts_only)
        return loaded

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
        loaded._standing = saved.training
        if saved.training is None:
            loaded._acts_only = (
                f"{where} holds what is needed to act, without optimiser and replay: save the agent with "
                f"save(path, include='training') to go on later, or begin a new one with these networks, "
                f"{cls.__name__}('MlpPolicy', env).set_parameters({where!r}, exact_match=False)"
            )
        return loaded

    @property
    def env(self) -> Any:
        """The environment it learns in, a JAX or a Gymnasium one, or None; deleted, it can act but not learn."""
        return self.handle.env

    @env.deleter
    def env(self) -> None:
        self.handle = dataclasses.replace(self.handle, env=None)

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
        """The environment with Gymnasium's face, or the vector of them as it was given, or None."""
        env = self.handle.gymnasium
        if isinstance(env, SB3Vector):
            return env.venv
        return SingleEnv(env) if isinstance(env, gymnasium.Env) else env

    def _stand(self, standing: Standing) -> None:
        """Take over where a training stands."""
        self.state, self.num_timesteps, self._standing = standing.state, standing.t, standing

    def _job(self, steps: int, seeds: list[int], start: Standing | None = None) -> Job:
        if self.handle.env is None:
            raise UsageError("this agent has no environment to learn in: give it one with set_env(env)")
        if self._acts_only is not None:
            raise UsageError(f"this agent cannot learn: {self._acts_only}")
        done, horizon, before = (0, None, None) if start is None else (start.t, start.horizon, start.before or None)
        plan = checked_plan(done + steps, self.agent, self.options, horizon if done else None)
        return Job(
            agents=[self.agent] * len(seeds),
            handle=self.handle,
            plan=dataclasses.replace(plan, before=before),
            start=start,
            seeds=seeds,
            gamma=self.spec.gamma,
            reports=False,
            strict=self.strict_support,
            kind=self.kind,
            options=self.options,
        )

    def _resolved(self, spec: EnvSpec, options: Mapping[str, Any]) -> dict[str, Any]:
        """The sizes of an update, and how often one is made, that options stand for."""
        known = agent_kind(self.kind).options
        agent: Any = make_agent(self.kind, spec, **{name: options[name] for name in options if name in known})
        every = {**agent.plan_defaults(100_000), **options}.get("learn_every", 100)
        return {"batch": getattr(agent, "batch", 1), "samples": getattr(agent, "samples", 1), "learn_every": every}

    def _sinks(self, name: str | None = None) -> list[Sink]:
        if self._given_logger is not None:
            return [LoggerSink(self._given_logger)]
        sinks: list[Sink] = []
        if self.verbose > 0:
            sinks.append(ConsoleSink())
        if self.tensorboard_log is not None:
            sinks.append(TensorBoardSink(self.tensorboard_log, name or type(self).__name__))
        return sinks

    def _write_monitors(self, history: Any, seeds: Sequence[int]) -> None:
        """Write the episodes down, however training ended."""
        if self.monitor_dir is None:
            return
        folder = make_folder(Path(self.monitor_dir))
        for run, seed in enumerate(seeds):
            name = MONITOR if len(seeds) == 1 else f"seed_{seed}.{MONITOR}"
            table = history.table().of_run(run)
            if len(seeds) == 1:
                table = EpisodeTable.join([*self._earlier, table])
            write_monitor(folder / name, table, self.spec.name, history.started)

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
