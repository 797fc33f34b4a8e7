"""Training in chunks: the same bits however it is cut, grouped, saved and resumed; what is not finite stops it."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.random import RandomAgent
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.errors import IncompatibleError, NumericalError, SentinelWarning, Stopped, StorageError
from sentinel_rl.storage import checkpoint
from sentinel_rl.storage.checkpoint import saved
from sentinel_rl.training.compiled import Training, chunks_together
from sentinel_rl.training.keeper import Keeper, common_step
from sentinel_rl.training.schedule import Every, Plan
from sentinel_rl.training.session import Session
from sentinel_rl.training.signals import Stopper
from tests.storage.trees import assert_same
from tests.training.pole import AGENT, ENV, assert_same_training

PLAN = Plan(240, Every(20), warmup=20)
SEEDS = [4, 9]


def begin(plan: Plan = PLAN, seeds: list[int] = SEEDS, **numbers: Any) -> Training:
    return Training([dataclasses.replace(AGENT, **numbers)] * len(seeds), ENV, plan, seeds)


def keeper(training: Training, path: Path) -> Keeper:
    return Keeper(training, path / "checkpoints", save_every=80, monitors=path, env_name=ENV.spec.name)


def train(training: Training, path: Path | None = None, **options: Any) -> Training:
    """Train to the end, from a checkpoint where there is one."""
    keepers = [] if path is None else [keeper(training, path)]
    Session([training], keepers=keepers, target=80, **options).run()
    return training


@pytest.fixture(scope="module")
def whole() -> Training:
    """A training that nobody disturbed."""
    return train(begin())


def test_the_bits_do_not_depend_on_the_chunks(whole):
    training = begin()
    for _ in training.chunks(40):
        pass
    assert_same_training(training, whole)
    assert training.t == PLAN.steps
    assert len(whole.history.table().run) > 2


def test_the_bits_do_not_depend_on_where_a_training_was_asked_to_stop(whole):
    training = begin()
    for end in (30, 150, 150, 210, 1_000):  # in the middle of a segment, again, and past the end of the plan
        for _ in training.chunks(100, end=end):
            pass
        assert training.t == min(end, PLAN.steps)
    assert_same_training(training, whole)


def test_a_seed_is_the_same_beside_others_and_differs_from_them(whole):
    training = train(begin(seeds=[9]))
    one, other = (jax.tree.leaves(t.agent_states()[-1].online)[0] for t in (training, whole))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(jax.tree.leaves(whole.agent_states()[0].online)[0], other)


def stopped_run(path: Path) -> None:
    """A run that was stopped on request after its first chunk."""
    stopper = Stopper(active=True)
    stopper.requested = True
    with pytest.raises(Stopped, match="after 80 of 240 steps, and saved"):
        train(begin(), path, stopper=stopper)


def test_stopped_and_resumed_equals_whole(tmp_path, whole):
    stopped_run(tmp_path)
    place = saved(tmp_path / "checkpoints")[-1]
    rows = {leaf.path: leaf.shape for leaf in checkpoint.read_manifest(place.folder).leaves}
    assert place.step == 80
    assert {shape[0] for path, shape in rows.items() if path.endswith("replay.rows")} == {64}, "the replay is full"
    told = []
    training = train(begin(), tmp_path, callbacks=[lambda progress: told.append(progress.t)])
    assert told == [80, 160, 240]
    assert_same_training(training, whole)
    assert [place.step for place in saved(tmp_path / "checkpoints")] == [160, 240], "the last two are kept"


def test_only_the_filled_part_of_a_replay_is_saved(tmp_path):
    training = begin()
    next(training.chunks(40))
    place = keeper(training, tmp_path)
    place.save()
    rows = {leaf.path: leaf.shape for leaf in checkpoint.read_manifest(saved(place.saver.parent)[-1].folder).leaves}
    assert {shape[0] for path, shape in rows.items() if path.endswith("replay.rows")} == {40}
    again = begin()
    keeper(again, tmp_path).resume()
    assert again.t == 40
    assert_same_training(again, training)


def test_one_checkpoint_by_its_step(tmp_path, whole):
    stopped_run(tmp_path)
    training = begin()
    place = keeper(training, tmp_path)
    assert place.steps() == [80]
    place.resume_from(80)
    assert training.t == place.saved_at == 80
    for _ in training.chunks(end=160):
        pass
    assert training.t == 160
    for _ in training.chunks():
        pass
    assert_same_training(training, whole)


def test_another_list_of_seeds_is_refused(tmp_path):
    stopped_run(tmp_path)
    with pytest.raises(IncompatibleError, match=r"seeds +\[4,9\] +\[4,8\]"):
        keeper(begin(seeds=[4, 8]), tmp_path).resume()


def test_where_nothing_was_saved_it_begins(tmp_path):
    training = begin()
    keeper(training, tmp_path).resume()
    assert training.t == 0


def test_a_full_disk_is_borne_with_until_the_end(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise StorageError("no room")

    monkeypatch.setattr(checkpoint, "save", full)
    with pytest.warns(SentinelWarning, match="of 3 in a row failed"), pytest.raises(StorageError):
        train(begin(), tmp_path)


def test_checkpoints_can_be_a_matter_of_time(tmp_path, monkeypatch):
    training = begin()
    place = Keeper(training, tmp_path, save_every=None, seconds=30.0)
    now = [0.0]
    monkeypatch.setattr("sentinel_rl.training.keeper.time.monotonic", lambda: now[0])
    place._saved_time = 0.0
    assert not place.due(80), "it is not yet time"
    now[0] = 31.0
    assert place.due(80)
    assert not place.due(0), "nothing is new"
    assert not place.saves_at_the_end


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_checkpoint(tmp_path):
    stopped_run(tmp_path)
    training = begin(learning_rate=float("inf"))
    with pytest.raises(NumericalError, match=r"loss nan at step \d+ of seed 4: .* the last checkpoint is kept"):
        train(training, tmp_path)
    assert saved(tmp_path / "checkpoints")[-1].step == 80


def one_of_them_ill() -> Training:
    agents = [dataclasses.replace(AGENT, learning_rate=rate) for rate in (float("inf"), AGENT.learning_rate)]
    return Training(agents, ENV, PLAN, SEEDS)


def test_a_run_that_fails_does_not_stop_the_others(tmp_path, whole):
    training = one_of_them_ill()
    with pytest.warns(SentinelWarning, match="seed 4: .*others go on"):
        train(training, tmp_path)
    assert list(training.failures) == [0]
    assert np.isfinite(jax.tree.leaves(training.agent_states()[1].online)[0]).all()
    one, other = (each.history.table().of_run(1) for each in (training, whole))
    np.testing.assert_array_equal(one.length, other.length)
    again = one_of_them_ill()
    keeper(again, tmp_path).resume()
    assert again.failures == {0: "seed 4 had failed before step 240"}, "it is known after a resume"


class Sick(CartPole):
    """A world that shows NaN after some steps, or pays it."""

    pays: bool = False

    def step(self, state, action, key):
        state, after = super().step(state, action, key)
        ill, pays = state.time > 5, jnp.asarray(self.pays)  # no Python branch: one program serves both tests
        reward = jnp.where(ill & pays, jnp.nan, after.reward)
        return state, after._replace(reward=reward, obs=jnp.where(ill & ~pays, jnp.nan, after.obs))


@pytest.mark.parametrize(("pays", "words"), [(True, "reward nan at step 6 of seed 4"), (False, "observation nan")])
def test_a_sick_world_stops_the_run(pays, words):
    training = Training([RandomAgent()], Sick(200, pays=pays), Plan(8, Every(20), warmup=20), [4])
    with pytest.raises(NumericalError, match=words):
        train(training)


def test_trainings_go_side_by_side_and_resume_from_a_step_that_all_have(tmp_path, whole):
    """One of two trainings was killed before its second checkpoint: both begin at the first."""
    places = [tmp_path / "a", tmp_path / "b"]
    first = [begin(), begin(gamma=0.5)]
    keepers = [keeper(training, place) for training, place in zip(first, places, strict=True)]
    for number, _ in enumerate(chunks_together(first, 80)):
        keepers[0].save()
        if number == 0:
            keepers[1].save()
    assert [common.steps() for common in keepers] == [[160, 240], [80]]
    assert common_step(keepers) == 0, "there is none that both have"
    keepers[1].save()
    assert common_step(keepers) == 240
    again = [begin(), begin(gamma=0.5)]
    Session(again, keepers=[keeper(t, place) for t, place in zip(again, places, strict=True)]).run()
    assert again[1].t == 240
    assert_same_training(again[0], whole)
    assert_same_training(again[1], first[1])


def test_only_trainings_of_the_same_plan_go_side_by_side():
    with pytest.raises(ValueError, match="the same environment, plan and steps so far"):
        next(chunks_together([begin(), begin(plan=Plan(80, Every(20)))]))


def test_the_state_of_a_run_is_that_of_its_seed(whole):
    for run in range(2):
        assert_same(whole.state_of(run), whole.agent_states()[run])
    with pytest.raises(IndexError):
        whole.state_of(2)
