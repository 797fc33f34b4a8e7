"""Plans in segments and chunks: every step and update once, few chunks, one compiled program, and the same bits."""

import dataclasses

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rl.training import population
from sentinel_rl.training.population import Fleet
from sentinel_rl.training.schedule import LARGEST_STEP, Every, Plan, Triangular
from sentinel_rl.training.segments import Segments, chunked, segments
from tests.training.pole import AGENT, ENV, PLAN, bit_equal, compilations, leaves

SCHEDULES = st.one_of(st.integers(1, 90).map(Every), st.just(Triangular()))
SIZE = 40


def covered(parts: Segments) -> list[int]:
    return [t for first, last in zip(parts.begin, parts.end, strict=True) for t in range(first, last)]


@given(SCHEDULES, st.integers(1, 300), st.integers(0, 80), st.integers(1, 60), st.data())
def test_segments_cover_every_step_once_and_number_the_updates(schedule, steps, warmup, longest, data):
    plan = Plan(steps=steps, learn=schedule, warmup=warmup)
    begin = data.draw(st.integers(0, steps - 1))
    end = data.draw(st.integers(begin + 1, steps + 20))
    parts = segments(plan, begin, end, longest)
    last = min(end, steps)
    assert covered(parts) == list(range(begin, last))
    assert max(parts.end - parts.begin) <= (longest if parts.length is None else parts.length) <= longest
    times = plan.learn_times.tolist()
    assert parts.update.tolist() == [times.index(t) + 1 if t in times else 0 for t in parts.end]
    assert [t for t in times if begin < t <= last] == [t for t in parts.end if t in times], "no update is lost"


def test_updates_are_numbered_from_one():
    parts = segments(Plan(steps=500, learn=Every(100), warmup=100))
    assert parts.begin.tolist() == [0, 100, 200, 300, 400]
    assert parts.end.tolist() == [100, 200, 300, 400, 500]
    assert parts.update.tolist() == [0, 1, 2, 3, 4]
    assert (parts.length, parts.full) == (100, True)


def test_the_length_of_a_full_segment_is_a_matter_of_the_schedule():
    short = Plan(steps=450, learn=Every(100), warmup=0)
    assert segments(short).length == 100
    assert not segments(short).full
    assert segments(short)[:4].full
    assert segments(short, 100, 300).full
    assert not segments(short, 150, 300).full
    assert not segments(Plan(steps=20, learn=Triangular(), warmup=0)).full
    rare = segments(Plan(steps=9_000, learn=Every(3_000), warmup=0))
    assert rare.end.tolist() == [1_500, 3_000, 4_500, 6_000, 7_500, 9_000]
    assert rare.update.tolist() == [0, 1, 0, 2, 0, 3]
    assert rare.full


def test_a_part_of_the_segments():
    parts = segments(Plan(steps=500, learn=Every(100), warmup=100))
    assert len(parts[1:3]) == 2
    assert parts[1:3].begin.tolist() == [100, 200]
    assert parts[1:3].update.tolist() == [1, 2]
    assert parts[1:3].length == 100


@given(SCHEDULES, st.integers(1, 400), st.integers(1, 100), st.integers(1, 150), st.data())
def test_chunks_cover_every_step_and_update_once_in_one_shape(learn, steps, size, target, data):
    plan = Plan(steps, learn, warmup=30)
    begin = data.draw(st.integers(0, steps))
    end = data.draw(st.none() | st.integers(begin, steps + 20))
    last = steps if end is None else min(end, steps)
    done, updates, shapes = [], [], set()
    for parts, rows in chunked(plan, begin, size, target, end):
        shapes.add((len(parts), parts.length, rows))
        done += covered(parts)
        assert 0 < parts.end[-1] - parts.begin[0] <= rows == size
        updates += [int(t) for t, update in zip(parts.end, parts.update, strict=True) if update > 0]
        held = np.count_nonzero(parts.end > parts.begin)
        assert np.all((parts.end > parts.begin)[:held]), "what fills up a chunk stands at its end"
        assert parts.end[-1] - parts.begin[0] <= target or held == 1
    assert done == list(range(begin, last))
    assert updates == [t for t in plan.learn_times if begin < t <= last]
    assert len(shapes) == (begin < last)
    other = next(chunked(Plan(517, learn, warmup=0), 0, size))
    assert shapes <= {(len(other[0]), other[0].length, other[1])}, "another number of steps has the same shape"


@pytest.mark.parametrize("learn", [Every(100), Every(70), Triangular()])
@pytest.mark.parametrize("steps", [100_000, 101_100, 99_990, 100_003])
def test_no_number_of_steps_makes_many_chunks(learn, steps):
    """101 100 steps once made 337 chunks, where 100 000 made 50."""
    assert 50 <= len(list(chunked(Plan(steps, learn), 0, 2_000))) <= 1.15 * steps / 2_000


def test_a_plan_that_is_done_has_no_chunks():
    assert list(chunked(PLAN, PLAN.steps, SIZE)) == []
    assert list(chunked(PLAN, 40, SIZE, end=40)) == []


@pytest.mark.parametrize("end", [150, 2_050])
def test_an_end_between_two_segments_is_cut_there(end):
    """One was ignored, and one was an IndexError."""
    ends = [int(parts.end[-1]) for parts, _ in chunked(Plan(4_000, Every(100)), 0, 2_000, end=end)]
    assert ends[-1] == end


def course(plan, *ends, target=None):
    """Run a plan, asked to stop at some steps: what the run became, and its trace and metrics where there are any."""
    fleet = Fleet(ENV, plan, jax.local_devices()[:1])
    groups, t = fleet.start([AGENT], [0]), 0
    rows, losses = [], []
    for end in (*ends, plan.steps):
        for parts, steps in chunked(plan, t, SIZE, target, end):
            ((group, trace, metrics),) = fleet.advance(groups, parts, steps)
            groups, done = [group], int(parts.end[-1]) - t
            rows.append([np.asarray(field)[0, :done] for field in trace])
            losses.append(np.asarray(metrics["loss"])[0, parts.update > 0])
            t += done
    return groups[0].runs, [np.concatenate(field) for field in zip(*rows, strict=True)], np.concatenate(losses)


def test_the_bits_do_not_depend_on_chunks_and_ends():
    expected = course(PLAN)
    assert expected[2].shape == (3,)
    assert np.isfinite(expected[2]).all()
    for ends, target in (((), 20), ((30, 50), None), ((7, 40, 79), 30)):
        assert bit_equal(course(PLAN, *ends, target=target), expected), ends


def test_another_number_of_steps_and_another_exploration_compile_nothing():
    course(PLAN, 30)
    kept = population._advance._cache_size()
    plans = [Plan(110, PLAN.learn, warmup=40, epsilon_end=0.5), Plan(33, PLAN.learn, warmup=0, epsilon_fraction=1.0)]
    with compilations() as names:
        runs = [course(plan) for plan in plans]
    assert "jit(_advance)" not in names
    assert population._advance._cache_size() == kept
    assert len({leaves(run.obs)[0].tobytes() for run, _, _ in runs}) == 2
    with compilations() as names:
        course(dataclasses.replace(PLAN, learn=Every(11)))
    assert "jit(_advance)" in names, "another length of segments is another program, and is noticed"


@pytest.mark.parametrize("learn", [Every(1), Every(100), Every(5_000), Triangular()])
def test_the_longest_plan_is_cut_without_a_list_of_its_updates(learn):
    """Whoever trains until it is enough asks for very many steps: a list of all updates would not fit into memory."""
    begin, size = LARGEST_STEP - 10_000, 2_000
    plan = Plan(LARGEST_STEP, learn, warmup=100)
    found = [parts for parts, _ in chunked(plan, begin, size)]
    ends = np.concatenate([parts.end[parts.end > parts.begin] for parts in found])
    assert ends[-1] == LARGEST_STEP
    updates = np.concatenate([parts.update for parts in found])
    made = plan.updates(LARGEST_STEP) - plan.updates(begin)
    assert updates[updates > 0].tolist() == list(range(plan.updates(begin) + 1, plan.updates(begin) + made + 1))
    first, _ = next(chunked(plan, 0, size))
    assert first.begin[0] == 0
