"""Training in chunks: the same bits however it is cut, grouped, saved and resumed; what is not finite stops it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sentinel_rl.agents.options import make_sentinel
from sentinel_rl.envs.cartpole import CartPole
from sentinel_rl.errors import NumericalError, SentinelWarning, Stopped, StorageError
from sentinel_rl.storage import checkpoint
from sentinel_rl.storage.checkpoint import saved
from sentinel_rl.storage.run_folder import open_run
from sentinel_rl.training.episodes import monitor_file
from sentinel_rl.training.loop import Training, load_into, train
from sentinel_rl.training.schedule import Every, Plan
from sentinel_rl.training.signals import Stopper
from tests.storage.trees import assert_same

ENV = CartPole()
PLAN = Plan(240, Every(20), warmup=20)
SEEDS = [4, 9]
SMALL = {"k": 2, "hidden": (4,), "capacity": 100, "samples": 8, "batch": 4}


def begin(plan=PLAN, seeds=SEEDS, **options):
    return Training([make_sentinel(ENV.spec, **SMALL | options)] * len(seeds), ENV, plan, seeds)


@pytest.fixture(scope="module")
def whole():
    """A training that nobody disturbed."""
    training = begin()
    train(training)
    return training


def test_the_bits_do_not_depend_on_the_chunks(whole):
    training = begin()
    for _ in training.chunks(40):
        pass
    assert_same(training.tree(), whole.tree())
    assert training.t == PLAN.steps
    assert [log.episodes[-1].length for log in training.logs] == [log.episodes[-1].length for log in whole.logs]


def test_the_bits_do_not_depend_on_where_a_training_was_asked_to_stop(whole):
    training = begin()
    for end in (30, 150, 150, 210, 1_000):  # in the middle of a segment, again, and past the end of the plan
        for _ in training.chunks(100, end=end):
            pass
        assert training.t == min(end, PLAN.steps)
    assert_same(training.tree(), whole.tree())


def test_a_seed_is_the_same_beside_others_and_differs_from_them(whole):
    training = begin(seeds=[9])
    train(training)
    one, other = (jax.tree.leaves(t.agent_states()[-1].online)[0] for t in (training, whole))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(jax.tree.leaves(whole.agent_states()[0].online)[0], other)


def stopped_run(path):
    """A run that was stopped on request after its first chunk."""
    stopper = Stopper(active=True)
    stopper.requested = True
    with open_run(path, {"seeds": SEEDS}) as folder, pytest.raises(Stopped, match="after 80 of 240 steps, and saved"):
        train(begin(), folder, stopper, save_every=80)


def test_stopped_and_resumed_equals_whole(tmp_path, whole):
    stopped_run(tmp_path)
    place = saved(tmp_path / "checkpoints")[-1]
    rows = {leaf.path: leaf.shape for leaf in checkpoint.read_manifest(place.folder).leaves}
    assert place.step == 80
    assert {shape[0] for path, shape in rows.items() if path.endswith("replay.rows")} == {80}  # what is filled
    reports = []
    with open_run(tmp_path, {"seeds": SEEDS}) as folder:
        training = begin()
        train(training, folder, save_every=80, report=lambda progress: reports.append(progress.t))
    assert reports == [80, 160, 240]
    assert_same(training.tree(), whole.tree())
    assert [[e[:3] for e in log.episodes] for log in training.logs] == [
        [e[:3] for e in log.episodes] for log in whole.logs
    ]


def test_one_checkpoint_by_name(tmp_path, whole):
    stopped_run(tmp_path)
    training = begin()
    load_into(training, saved(tmp_path / "checkpoints")[-1].folder)
    assert training.t == 80
    for _ in training.chunks(end=160):
        pass
    assert training.t == 160
    for _ in training.chunks():
        pass
    assert_same(training.tree()["runs"], whole.tree()["runs"])


def test_lost_episodes_are_warned_about(tmp_path):
    stopped_run(tmp_path)
    monitor_file(tmp_path, 4).unlink()
    with open_run(tmp_path, {"seeds": SEEDS}) as folder, pytest.warns(SentinelWarning, match="episodes .* are lost"):
        train(begin(), folder, save_every=80)


def test_a_full_disk_is_borne_with_until_the_end(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise StorageError("no room")

    monkeypatch.setattr(checkpoint, "save", full)
    with (
        open_run(tmp_path, {"seeds": SEEDS}) as folder,
        pytest.warns(SentinelWarning, match="of 3 in a row failed"),
        pytest.raises(StorageError),
    ):
        train(begin(), folder, save_every=80)


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_checkpoint(tmp_path):
    stopped_run(tmp_path)
    with open_run(tmp_path, {"seeds": SEEDS}) as folder:
        training = begin(learning_rate=float("inf"))
        with pytest.raises(NumericalError, match=r"loss nan at step \d+ of seed 4: .* the last checkpoint is kept"):
            train(training, folder)
    assert saved(tmp_path / "checkpoints")[-1].step == 80


def one_of_them_ill():
    rates = (float("inf"), make_sentinel(ENV.spec, **SMALL).learning_rate)
    return Training([make_sentinel(ENV.spec, **SMALL, learning_rate=rate) for rate in rates], ENV, PLAN, SEEDS)


def test_a_run_that_fails_does_not_stop_the_others(tmp_path, whole):
    training = one_of_them_ill()
    with open_run(tmp_path, {"seeds": SEEDS}) as folder, pytest.warns(SentinelWarning, match="seed 4: .*others go on"):
        train(training, folder, save_every=80)
    assert list(training.failures) == [0]
    assert np.isfinite(jax.tree.leaves(training.agent_states()[1].online)[0]).all()
    assert [e[:3] for e in training.logs[1].episodes] == [e[:3] for e in whole.logs[1].episodes]
    again = one_of_them_ill()
    load_into(again, saved(tmp_path / "checkpoints")[-1].folder)
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
    agent = make_sentinel(ENV.spec, **SMALL)
    training = Training([agent], Sick(pays=pays), Plan(8, Every(20), warmup=20), [4])
    with pytest.raises(NumericalError, match=words):
        train(training)
