"""What reporters and sessions do with trainings: speed, scalars, warnings; when they evaluate, save and stop."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from sentinel_rl.agents.agent import BaseAgent
from sentinel_rl.errors import SentinelWarning, Stopped, UsageError
from sentinel_rl.training import session
from sentinel_rl.training.compiled import BaseTraining, Progress
from sentinel_rl.training.history import History
from sentinel_rl.training.metrics import Episodes
from sentinel_rl.training.schedule import Plan
from sentinel_rl.training.session import Evaluator, Reporter, Session
from sentinel_rl.training.signals import Stopper
from sentinel_rl.training.sinks import Logger
from sentinel_rl.training.standing import Standing


class Worried(BaseAgent):
    """Warns when its loss is above 1, and reports the steps that it has seen."""

    def act(self, state: Any, obs: Any, epsilon: Any, key: Any) -> Any: ...

    def init(self, spec: Any, key: Any) -> Any: ...

    def observe(self, state: Any, t: Any, transition: Any, key: Any) -> Any: ...

    def learn(self, state: Any, update: Any, key: Any) -> Any: ...

    def check(self, t: int, metrics: Mapping[str, float], state: Callable[[], Any]) -> str | None:
        return f"loss {metrics['loss']:g} of run {state()} after {t} steps" if metrics["loss"] > 1 else None


class Fake(BaseTraining):
    """Trainings without an agent at work: one episode of 2 steps per step of ten, and what was asked for."""

    def __init__(self, seeds: tuple[int, ...] = (5,)):
        plan = Plan(steps=60, warmup=0)
        super().__init__([Worried()] * len(seeds), plan, seeds, History(len(seeds), 60, 6, 0.5))
        self.reports = 0

    def state_of(self, run: int) -> Any:
        return np.array(run)

    def agent_states(self) -> list[Any]:
        return [self.state_of(run) for run in range(len(self.seeds))]

    def standing(self) -> Standing:
        return Standing(self.state_of(0), self.t)

    def report(self) -> None:
        self.reports += 1
        self.history.add_report(self.t, [{"mean": np.array([float(self.t + run)])} for run in range(len(self.seeds))])

    def advance(self, steps: int = 10, **metrics: Any) -> Progress:
        done = np.zeros((len(self.seeds), steps), bool)
        done[:, 1] = True
        self.history.extend(np.ones(done.shape, np.float32), done, np.zeros_like(done))
        self.t += steps
        given = {name: np.atleast_2d(values).astype(float) for name, values in metrics.items()}
        return Progress(self.t, 60, self.seeds, self.history, given)


class Listing:
    """A sink that keeps what it is given."""

    def __init__(self):
        self.lines: list[tuple[int, int, dict[str, float]]] = []

    def write(self, step: int, values: Mapping[str, float], seed: int) -> None:
        self.lines.append((step, seed, dict(values)))

    def close(self) -> None: ...


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """A clock that a test sets."""
    now = [100.0]
    monkeypatch.setattr(session.time, "perf_counter", lambda: now[0])
    return now


def test_sinks_are_told_the_known_scalars(clock: list[float]):
    training, sink = Fake((5, 8)), Listing()
    reporter = Reporter([Logger([sink], seed) for seed in (5, 8)])
    reporter.begin(0)
    clock[0] += 2.0
    losses = [[np.nan, 0.5, 1.0], [np.nan, 0.25, 0.25]]
    reporter(training, training.advance(loss=losses, clip_low=losses, clip_high=losses, spread=losses))
    assert [line[:2] for line in sink.lines] == [(10, 5), (10, 8)]
    assert sink.lines[0][2] == {
        "rollout/ep_rew_mean": 2.0,
        "rollout/ep_len_mean": 2.0,
        "time/fps": 5.0,
        "train/loss": 0.75,
        "risk/support_clip_low": 0.75,
        "risk/support_clip_high": 0.75,
        "train/spread": 0.75,
        "risk/mean": 10.0,
    }
    assert (sink.lines[1][2]["train/loss"], sink.lines[1][2]["risk/mean"]) == (0.25, 11.0)


def test_the_speed_is_that_of_the_steps_since_a_resume(clock: list[float]):
    """0.1 divided all steps by the time since the resume, and told a run of 5 steps a second 25."""
    training, sink = Fake(), Listing()
    reporter = Reporter([Logger([sink], 5)])
    training.advance(40)
    clock[0] += 1_000.0
    reporter.begin(training.t)
    clock[0] += 2.0
    reporter(training, training.advance())
    assert sink.lines[-1][2]["time/fps"] == 5.0


def test_without_updates_and_episodes_less_is_told():
    training, sink = Fake(), Listing()
    training.t = 1
    reporter = Reporter([Logger([sink], 5)], reports=False)
    reporter(training, Progress(1, 60, [5], training.history, {"loss": np.full((1, 2), np.nan)}))
    assert set(sink.lines[0][2]) == {"time/fps", "risk/mean"}


@pytest.mark.parametrize(("reports", "sinks", "asked"), [(True, 0, 1), (False, 0, 0), (False, 1, 1), (True, 1, 1)])
def test_agents_are_asked_for_reports_where_somebody_wants_them(reports: bool, sinks: int, asked: int):
    training = Fake()
    Reporter([Logger([Listing()] * sinks, 5)], reports=reports)(training, training.advance())
    assert training.reports == asked


def test_an_agents_warning_is_given_once():
    training = Fake((5, 8))
    reporter = Reporter([Logger([], seed) for seed in (5, 8)], reports=False)
    reporter(training, training.advance(loss=[[0.5], [0.5]]))
    with pytest.warns(SentinelWarning, match="loss 7 of run 1 after 20 steps") as warned:
        reporter(training, training.advance(loss=[[0.5], [7.0]]))
    assert len(warned) == 1
    reporter(training, training.advance(loss=[[9.0], [9.0]]))


def test_strict_means_an_error():
    training = Fake()
    with pytest.raises(UsageError, match="loss 7 of run 0 after 10 steps"):
        Reporter([Logger()], strict=True)(training, training.advance(loss=7.0))


def test_neither_a_run_that_failed_nor_one_without_updates_is_checked():
    training = Fake((5, 8))
    training.failures[0] = "it is ill"
    Reporter([Logger()] * 2, strict=True)(training, training.advance(loss=[[9.0], [np.nan]]))


class Scripted(Session):
    """A session whose training is a fake that goes on in chunks of ten steps."""

    def _chunks(self, end: int) -> Iterator[list[Progress]]:
        while self.t < end:
            yield [self.trainings[0].advance(min(10, end - self.t))]


def run(**options: Any) -> tuple[Scripted, list[int]]:
    seen: list[int] = []
    watched = [lambda progress: seen.append(progress.t), *options.pop("callbacks", [])]
    played = Scripted([Fake()], callbacks=watched, **options)
    played.run()
    return played, seen


def test_callbacks_are_told_after_every_chunk():
    played, seen = run()
    assert seen == [10, 20, 30, 40, 50, 60]
    assert not played.stopped_early


def test_a_callback_that_returns_false_ends_the_training_and_all_are_called():
    first, second = [], []

    def stop(progress: Progress) -> bool:
        first.append(progress.t)
        return progress.t < 30

    played, seen = run(callbacks=[stop, lambda progress: second.append(progress.t)])
    assert seen == first == second == [10, 20, 30]
    assert played.stopped_early
    assert played.t == 30


def test_none_is_not_false():
    assert run(callbacks=[lambda progress: 0])[1] == [10, 20, 30, 40, 50, 60]


class Asked(Evaluator):
    """Notes when it was asked, and is better the later it is asked until step 40."""

    def __init__(self):
        self.times: list[int] = []

    def __call__(self, training: BaseTraining) -> Any:
        self.times.append(training.t)
        score = float(min(training.t, 40))
        return Episodes(*[np.full((1, 2), score)] * 4), {"told": np.zeros(1)}


@pytest.mark.parametrize(
    ("every", "times"), [(20, [20, 40, 60]), (25, [25, 50, 60]), (60, [60]), (100, [60]), (None, [])]
)
def test_evaluations_are_made_every_so_many_steps_and_at_the_end(every: int | None, times: list[int]):
    evaluator = Asked()
    played = Scripted([Fake()], evaluator, evaluate_every=every)
    played.run()
    assert evaluator.times == times
    found = played.trainings[0].history.evaluations()
    assert found is None if every is None else found[0].tolist() == times
    final = played.evaluate_finally()
    assert final is not None
    assert list(final[1]) == ["told"]


def test_a_training_that_is_resumed_at_the_step_of_an_evaluation_is_evaluated_there_once():
    training, evaluator = Fake(), Asked()
    training.advance(20)  # and saved, but not evaluated
    Scripted([training], evaluator, evaluate_every=20).run()
    Scripted([training], evaluator, evaluate_every=20).run()
    assert evaluator.times == [20, 40, 60]


def test_the_best_policy_is_that_of_the_first_of_the_best_evaluations():
    played = Scripted([Fake()], Asked(), evaluate_every=10)
    played.run()
    (best,) = played.trainings[0].best
    assert (best.step, best.score) == (40, 40.0)


def test_without_an_evaluator_nothing_is_evaluated():
    assert run()[0].evaluate_finally() is None


def test_a_stop_that_is_requested_without_a_folder_says_what_was_done():
    stopper = Stopper(active=True)

    def request(progress: Progress) -> None:
        stopper.requested = progress.t == 20

    with pytest.raises(Stopped, match=r"^stopped after 20 of 60 steps$"):
        run(stopper=stopper, callbacks=[request])


def test_a_stop_at_the_end_comes_too_late():
    stopper = Stopper(active=True)

    def request(progress: Progress) -> None:
        stopper.requested = progress.done

    assert run(stopper=stopper, callbacks=[request])[1][-1] == 60
