"""Small faults, put into the code one at a time, that the light tests must notice.

Run by hand as ``python -m tests.mutations``; ``--list`` shows the mutations with their numbers, ``--only N`` makes some
of them. Every mutation is made in a copy of ``src``, and the few tests that are named beside it must notice it and pass
without it. One that no test can notice, because it changes nothing, says why. Not part of ``make test``.
"""

import argparse
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A fault may end in a loop without an end: that is noticed too.
PATIENCE = 180.0
FAILED, HANGS = 1, -1


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One fault.

    Args:
        file: below ``src``.
        old: the text that is replaced, which occurs once.
        new: the text in its place.
        tests: that notice it, below ``tests``.
        reason: why it changes nothing, where no test can notice it.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    reason: str = ""

    def applied(self, text: str) -> str:
        """The text of the file with the fault in it."""
        if text.count(self.old) != 1:
            raise SystemExit(f"{self.file}: {self.old!r} occurs {text.count(self.old)} times, expected once")
        return text.replace(self.old, self.new)


def m(file: str, old: str, new: str, tests: str, reason: str = "") -> Mutation:
    """A mutation of the library, or of the paper's package; the tests are separated by spaces."""
    package = "" if file.startswith("sentinel_paper/") else "sentinel_rl/"
    return Mutation(package + file, old, new, tuple(tests.split()), reason)


MUTATIONS: list[Mutation] = [
    # laws, several steps at once, and the scale of observations
    m("heads/quantile.py", "jnp.clip(fixed, -kappa, kappa)", "jnp.clip(fixed, -kappa, 1.0)", "heads/test_quantile.py"),
    m("heads/quantile.py", "+ 0.5) / quantiles.size", ") / quantiles.size", "heads/test_quantile.py"),
    m("heads/quantile.py", "sort_values(outputs),", "outputs,", "heads/test_quantile.py"),
    m("heads/quantile.py", "distance / spread[None])", "distance * spread[None])", "heads/test_quantile.py"),
    m("replay.py", "factor * horizon.gamma, factor)", "factor, factor)", "test_n_step.py"),
    m("replay.py", "found & ~(last.terminated | last.truncated)", "found & ~last.terminated", "test_n_step.py"),
    m("replay.py", "& (ahead <= self.newest)", "", "test_n_step.py"),
    m("replay.py", "obs=first.obs, action=first.action,", "action=first.action,", "test_n_step.py"),
    m("nets/ensemble.py", "1 / width if 0 < width < 1", "width if 0 < width < 1", "nets agents/test_choices.py"),
    m("agents/learning.py", "(longest / jnp.maximum(norm, longest))", "(longest / norm)", "agents/test_learning.py"),
    m(
        "agents/options.py",
        "min(max(1 - 2 / spec.max_steps, 0.95), 0.99)",
        "max(1 - 2 / spec.max_steps, 0.95)",
        "agents",
    ),
    # encoders and shared draws
    m("nets/encoders.py", "rows[0], rows[1:]", "rows[-1], rows[:-1]", "nets/test_encoders.py"),
    m("nets/encoders.py", "jnp.max(x, axis=0)", "jnp.min(x, axis=0)", "nets/test_encoders.py"),
    m(
        "nets/ensemble.py",
        "(0, 0, 0, None))(*self._arrays, obs)\n        return outputs\n\n    def batch",
        "(0, 0, 0, None))(*self._arrays, -obs)\n        return outputs\n\n    def batch",
        "nets/test_encoders.py",
    ),
    m(
        "replay.py",
        "jnp.minimum(self.newest + 1, self.capacity)",
        "jnp.minimum(self.newest, self.capacity)",
        "test_replay.py",
    ),
    m("replay.py", "index = self.newest - back", "index = self.newest - back - 1", "test_replay.py"),
    # agents
    m(
        "replay.py",
        "return step.terminated | step.truncated if",
        "return step.terminated & step.truncated if",
        "agents/test_learning.py::test_a_target_by_hand",
    ),
    m(
        "agents/learning.py",
        'self.n_step, self.time_limit == "terminal"',
        'self.n_step, self.time_limit != "terminal"',
        "agents/test_learning.py::test_a_target_by_hand",
    ),
    m(
        "agents/learning.py",
        "update % self.target_every == 0",
        "(update + 1) % self.target_every == 0",
        "agents/test_learning.py::test_targets_are_copied_at_every_third_update_and_not_between",
    ),
    m(
        "agents/learning.py",
        "epsilon if self.use_epsilon else jnp.zeros(())",
        "jnp.zeros(()) if self.use_epsilon else epsilon",
        "agents/test_uadqn.py::test_epsilon_counts_where_it_is_asked_for",
    ),
    m(
        "agents/learning.py",
        "best = jnp.argmax(told.value, axis=-1)[:, None]",
        "best = jnp.argmin(told.value, axis=-1)[:, None]",
        "agents/test_frozen.py::test_a_report_tells_of_the_preferred_action",
    ),
    m(
        "agents/learning.py",
        "(rest, jnp.asarray(count))",
        "(first, jnp.asarray(count))",
        "agents/test_learning.py::test_an_epoch_is_adam_on_consecutive_minibatches "
        "agents/test_learning.py::test_the_last_minibatch_may_be_short",
    ),
    m(
        "agents/sentinel.py",
        "else (state.target, 0.0)",
        "else (state.target, self.lam)",
        "agents/test_learning.py::test_the_literal_reading_chooses_without_weights",
    ),
    m(
        "agents/sentinel.py",
        "(state.target.batch if shared else state.target.per_member)(transitions.next_obs)",
        "(state.online.batch if shared else state.online.per_member)(transitions.next_obs)",
        "agents/test_learning.py",
    ),
    m(
        "agents/sentinel.py",
        "jnp.mean(batch.weight * losses, axis=1)",
        "jnp.mean(losses, axis=1)",
        "agents/test_learning.py::test_the_loss_and_its_gradient_are_softmax_minus_target "
        "agents/test_learning.py::test_a_member_without_data_does_not_change",
    ),
    m(
        "agents/sentinel.py",
        "self.k, self.mask, self.mask_rate)",
        "self.k, self.mask, 1 - self.mask_rate)",
        "agents/test_learning.py::test_observing_keeps_the_transition_with_its_mask",
    ),
    m(
        "agents/sentinel.py",
        "(why.additive[action] < jnp.max(why.additive))",
        "(why.additive[action] <= jnp.max(why.additive))",
        "agents/test_choices.py::test_diagnostics_tell_where_other_values_of_the_same_belief_differ",
    ),
    m(
        "agents/agent.py",
        "jnp.where(explore < epsilon, anything, best)",
        "jnp.where(explore < epsilon, best, anything)",
        "agents/test_choices.py::test_epsilon_greedy_frequencies",
    ),
    m(
        "agents/agent.py",
        "jnp.stack(ranks), -1.0)",
        "values, -jnp.inf)",
        "agents/test_choices.py::test_epsilon_greedy_frequencies",
    ),
    m(
        "agents/vdqn.py",
        "/ (2 * noise**2) - posterior.log_sd()",
        "/ (2 * noise**2) + posterior.log_sd()",
        "agents/test_vdqn.py::test_the_loss_of_one_weight_in_closed_form",
    ),
    m("agents/vdqn.py", "+ self.noise * numbers[:, -1:]", "+ self.noise * numbers[:, :1]", "agents/test_vdqn.py"),
    m(
        "agents/vdqn.py",
        "transition.terminated | transition.truncated, key",
        "transition.terminated, key",
        "agents/test_vdqn.py::test_another_network_acts_after_an_episode",
    ),
    m(
        "agents/vdqn.py",
        "self.returns(state.target, obs, score_key)",
        "self.returns(state.online, obs, score_key)",
        "agents/test_vdqn.py::test_the_score_chooses_the_action_of_the_successor",
    ),
    m(
        "agents/posterior.py",
        "x**2 @ weight_sd**2",
        "x**2 @ weight_sd",
        "agents/test_vdqn.py::test_outputs_drawn_unit_by_unit_have_the_law_of_whole_networks",
    ),
    m(
        "agents/uadqn.py",
        "told.mean - self.aversion * told.aleatory_sd",
        "told.mean + self.aversion * told.aleatory_sd",
        "agents/test_uadqn.py::test_drawn_values_have_the_stated_law",
    ),
    m(
        "heads/quantile.py",
        "jnp.where(fixed < 0, 1 - levels[:, None], levels[:, None])",
        "jnp.where(fixed < 0, levels[:, None], 1 - levels[:, None])",
        "agents/test_uadqn.py::test_the_loss_is_a_double_sum",
    ),
    m(
        "agents/uadqn.py",
        "jnp.minimum(state.replay.count[0], state.replay.capacity)",
        "state.replay.count[0]",
        "agents/test_uadqn.py::test_anchors_pull_less_the_more_is_seen",
    ),
    m("heads/support.py", "gamma * following * (not ended[t])", "gamma * following", "agents/test_support.py"),
    # nets
    m("nets/mlp.py", "jax.nn.relu(x @ weight + bias)", "x @ weight + bias", "nets/test_mlp.py::test_against_a_loop"),
    m(
        "nets/mlp.py",
        "jax.vmap(self._scaled)(obs)) + self.biases[0][..., None]",
        "jax.vmap(self._scaled)(obs))",
        "nets/test_mlp.py::test_columns_equal_the_call",
    ),
    m(
        "nets/initial.py",
        "(6 / (shape[-2] + shape[-1]))",
        "(6 / (shape[-3] + shape[-1]))",
        "nets/test_mlp.py::test_first_weights_are_glorot_uniform_and_biases_zero",
    ),
    m(
        "nets/initial.py",
        "(3 / shape[-2])",
        "(3 / shape[-1])",
        "agents/test_vdqn.py::test_initial_deviations_are_as_given",
    ),
    m(
        "nets/mlp.py",
        "draw(layer_key, (members, heads, fan_in, fan_out))",
        "draw(key, (members, heads, fan_in, fan_out))",
        "nets/test_mlp.py::test_layers_of_one_size_start_apart",
    ),
    m(
        "nets/initial.py",
        "return gain * (basis",
        "return (basis",
        "nets/test_mlp.py::test_orthogonal_weights_have_orthogonal_sides "
        "agents/test_uadqn.py::test_initial_weights_are_orthogonal_and_independent",
    ),
    m("nets/normalisation.py", "jnp.sqrt(variance + EPSILON)", "jnp.sqrt(variance)", "nets/test_normalisation.py"),
    m(
        "nets/normalisation.py",
        "jnp.mean(x, axis=-1, keepdims=True)",
        "jnp.mean(x, keepdims=True)",
        "nets/test_normalisation.py::test_against_a_loop",
    ),
    m(
        "nets/encoders.py",
        "_largest(x) if self.layer_norm else jnp.max(x, axis=0)",
        "jnp.max(x, axis=0)",
        "nets/test_normalisation.py::test_gains_and_shifts_are_ones_and_zeros_that_learn",
    ),
    m(
        "nets/prior.py",
        "hidden, stretch, layer_norm=layer_norm)",
        "hidden, stretch)",
        "nets/test_prior.py::test_a_prior_is_normalised_as_what_learns_is",
    ),
    m(
        "_checks.py",
        "return chosen or None",
        "return chosen",
        "agents/test_options.py::test_layer_norm_that_is_off_is_nothing",
    ),
    # averaged networks
    m(
        "agents/learning.py",
        "share = 1.0 / jnp.clip(copies, 1, over)",
        "share = 1.0 / over",
        "agents/test_average.py::test_the_frozen_policy_has_the_mean_of_the_copies",
    ),
    m(
        "agents/learning.py",
        "due | (copies == 0), moved",
        "due, moved",
        "agents/test_average.py::test_before_the_first_copy_it_is_what_was_learnt",
    ),
    m(
        "agents/sentinel.py",
        "best_action(self.values(self.policy(state), obs))",
        "best_action(self.values(state.online, obs))",
        "agents/test_average.py::test_the_greedy_action_is_that_of_the_averages",
    ),
    # replay
    m(
        "replay.py",
        "oldest = self.newest - self.capacity + 1",
        "oldest = self.newest - self.capacity",
        "test_replay.py",
    ),
    m("replay.py", "self.count + sees, t, self.obs_size", "self.count + 1, t, self.obs_size", "test_replay.py"),
    m("replay.py", "jnp.maximum(available - 1, 0)) + 1", "jnp.maximum(available - 1, 0))", "test_replay.py"),
    m(
        "replay.py",
        "jnp.where(available > 0, own, 0.0)",
        "own",
        "test_replay.py",
        "a member that may draw nothing has weight 0 in every row that is kept",
    ),
    m(
        "replay.py",
        "truncated=rest[..., 3] > 0",
        "truncated=rest[..., 2] > 0",
        "test_replay.py::test_a_transition_comes_back_whole",
    ),
    m(
        "replay.py",
        "newest = jnp.full_like(self.newest, count - 1)",
        "newest = jnp.full_like(self.newest, count)",
        "test_replay.py::test_the_latest_transitions_stand_alone",
    ),
    m(
        "replay.py",
        "(replay.rows[:t], replay.queue[:, :t])",
        "(replay.rows[: t - 1], replay.queue[:, :t])",
        "training/test_compiled.py::test_only_the_filled_part_of_a_replay_is_saved",
    ),
    # training
    m(
        "training/fused.py",
        "ended = after.terminated | after.truncated",
        "ended = after.terminated",
        "training/test_fused.py::test_an_episode_that_the_time_limit_ends_is_followed_by_a_new_one",
    ),
    m(
        "training/fused.py",
        "env.reset(reset_key), (world, after.obs)",
        "env.reset(step_key), (world, after.obs)",
        "training/test_host.py::test_the_trace_is_that_of_the_fused_runner",
    ),
    m(
        "training/fused.py",
        "fold_in(run_key, -update)",
        "fold_in(run_key, update)",
        "training/test_fused.py::test_every_purpose_of_every_step_has_a_key_of_its_own",
    ),
    m(
        "training/fused.py",
        "after.reward, after.obs, after.terminated",
        "after.reward, obs, after.terminated",
        "training/test_fused.py::test_the_replay_holds_true_successors",
    ),
    m(
        "training/fused.py",
        "now.pack(), t - origin, axis=0",
        "now.pack(), t, axis=0",
        "training/test_fused.py::test_neither_chunks_nor_the_kind_of_loop_matter",
    ),
    m(
        "training/schedule.py",
        "self.learn.times(self.steps, min(self.warmup, self.steps))",
        "self.learn.times(self.steps, 0)",
        "training/test_schedule.py::test_no_update_during_the_warmup",
    ),
    m(
        "training/schedule.py",
        "(t - self.warmup).astype(jnp.float32)",
        "t.astype(jnp.float32)",
        "training/test_schedule.py::test_epsilon_by_hand",
    ),
    m(
        "training/segments.py",
        "min(max(fitting, 1), count)",
        "min(max(fitting, 1), count - 1)",
        "training/test_segments.py::test_chunks_cover_every_step_and_update_once_in_one_shape "
        "training/test_segments.py::test_no_number_of_steps_makes_many_chunks",
    ),
    m(
        "training/segments.py",
        "cuts[(cuts > begin) & (cuts <= last)]",
        "cuts[(cuts > begin) & (cuts < last)]",
        "training/test_segments.py::test_segments_cover_every_step_once_and_number_the_updates",
    ),
    m(
        "training/history.py",
        "np.searchsorted(self.grid, table.end)",
        'np.searchsorted(self.grid, table.end, side="right")',
        "training/test_history.py::test_curves_of_a_case_made_by_hand",
    ),
    m(
        "training/history.py",
        "if number == 0:",
        "if number >= 0:",
        "training/test_history.py training/test_trainer.py::test_metrics_of_updates_are_means_since_the_point_before",
    ),
    m(
        "training/history.py",
        "np.cumsum(falls, axis=1)",
        "np.cumsum(falls, axis=0)",
        "training/test_history.py::test_curves_of_a_case_made_by_hand",
    ),
    m(
        "training/history.py",
        "self._counter.restore(t, **named(_PARTIAL))",
        "self._counter.restore(0, **named(_PARTIAL))",
        "training/test_history.py::test_a_history_that_was_saved_goes_on_as_if_it_had_not_been",
    ),
    m(
        "training/episodes.py",
        "self._gamma**self.length * reward",
        "self._gamma ** (self.length + 1) * reward",
        "training/test_episodes.py::test_a_log_of_one_environment_says_the_same",
    ),
    m(
        "training/session.py",
        "if end > self.t or (end == self.t and not self._evaluated(end)):",
        "if end > self.t:",
        "training/test_session.py::test_a_training_that_is_resumed_at_the_step_of_an_evaluation_is_evaluated_there_once",
    ),
    m("training/session.py", "if savable and (stop", "if (stop", "training/test_host_training.py"),
    m(
        "training/compiled.py",
        "score > self.best[run].score",
        "score >= self.best[run].score",
        "training/test_session.py::test_the_best_policy_is_that_of_the_first_of_the_best_evaluations",
    ),
    m(
        "training/keeper.py",
        "t - self.saved_at >= self.save_every",
        "t - self.saved_at > self.save_every",
        "training/test_compiled.py::test_stopped_and_resumed_equals_whole",
    ),
    m(
        "training/keeper.py",
        "max(set.intersection(*steps), default=0)",
        "max(set.union(*steps), default=0)",
        "training/test_compiled.py::test_trainings_go_side_by_side_and_resume_from_a_step_that_all_have",
    ),
    m(
        "training/host.py",
        "np.cumsum(valid) <= count",
        "np.cumsum(valid) <= count + 1",
        "training/test_host.py::test_an_agent_learns_in_a_vector_of_environments "
        "training/test_trainer.py::test_a_vector_of_environments",
    ),
    m(
        "training/host.py",
        "step_keys(run_key, t + i).observe",
        "step_keys(run_key, t).observe",
        "training/test_host.py::test_what_is_learned_is_bit_equal_to_the_fused_runner_s",
    ),
    m(
        "training/host_envs.py",
        "valid, self._ended = ~self._ended, ended",
        "valid, self._ended = self._ended, ended",
        "training/test_host.py::test_a_vector_of_environments_in_every_mode_of_starting_anew",
    ),
    m(
        "training/evaluation.py",
        "discounted + gamma**length * now",
        "discounted + gamma ** (length + 1) * now",
        "training/test_evaluate.py::test_gymnasium_gives_the_same_kind_of_episodes",
    ),
    m(
        "training/evaluation.py",
        "live & ~(after.terminated | after.truncated)",
        "live & ~after.terminated",
        "training/test_evaluate.py::test_an_episode_that_is_cut_off_is_over",
    ),
    m(
        "training/evaluation.py",
        "discount = handle.spec.gamma if gamma is None else gamma",
        'discount = getattr(agent, "gamma", 0.99) if gamma is None else gamma',
        "training/test_evaluate.py::test_the_discount_is_the_tasks_and_not_the_agents",
    ),
    m(
        "training/population_evaluation.py",
        "weights = numbers < evaluation.episodes",
        "weights = numbers <= evaluation.episodes",
        "study/test_run.py::test_an_evaluation_in_slices_is_the_whole",
    ),
    m(
        "training/metrics.py",
        "alpha * size - np.arange(size)",
        "alpha * size - np.arange(1, size + 1)",
        "training/test_metrics.py::test_summary_by_hand",
    ),
    m(
        "training/legacy.py",
        '"epsilon_fraction": 0.25',
        '"epsilon_fraction": 0.5',
        "training/test_legacy.py::test_the_plan_is_that_of_that_version",
    ),
    m(
        "training/policy.py",
        "if name not in measures]",
        "if name in measures]",
        "training/test_policy.py::test_a_measure_without_a_name_is_asked_for_when_loading",
    ),
    # storage
    m(
        "storage/atomic.py",
        "                sync_file(file)\n            os.replace(hidden, path)",
        "            os.replace(hidden, path)",
        "storage/test_atomic.py faults/test_disk.py",
    ),
    m(
        "storage/atomic.py",
        "            shutil.rmtree(hidden, ignore_errors=True)\n            raise",
        "            raise",
        "faults/test_disk.py",
    ),
    m("storage/atomic.py", "if free < SPARE * size:", "if free > SPARE * size:", "faults/test_disk.py"),
    m("storage/arrays.py", "if info.CRC != leaf.crc32:", "if leaf.crc32 is None:", "faults/test_damage.py"),
    m("storage/manifest.py", "if not ours or checksum != whole:", "if not ours:", "faults/test_damage.py"),
    m(
        "storage/manifest.py",
        "    rows += _leaf_differences(manifest.leaves, asked)\n",
        "",
        "storage/test_checkpoint.py",
    ),
    m("storage/checkpoint.py", "if number <= step)[-keep:]", "if number <= step)[:keep]", "storage/test_checkpoint.py"),
    m(
        "storage/checkpoint.py",
        "for number in newest if number <= step)",
        "for number in newest)",
        "storage/test_checkpoint.py",
    ),
    m("storage/checkpoint.py", "        self.failures = 0\n", "", "storage/test_checkpoint.py"),
    m(
        "storage/configuration.py",
        'isinstance(version, (int, str)) else {"version": version}',
        "isinstance(version, (int, str)) else {}",
        "storage/test_configuration.py training/test_identity.py::test_a_version_of_the_users_own_counts",
    ),
    m(
        "storage/configuration.py",
        "sort_keys=True, separators",
        "sort_keys=False, separators",
        "storage/test_configuration.py",
    ),
    m("storage/lock.py", "return holder.alive is not False", "return holder.alive is True", "faults/test_locks.py"),
    m(
        "storage/run_folder.py",
        'if content.get("hash") != digest(configuration) or not',
        "if not",
        "storage/test_run_folder.py",
    ),
    m(
        "storage/run_folder.py",
        "longer = _require_fit(path, asked, overwrite, upgrade, extend)",
        "longer = False",
        "storage/test_run_folder.py faults/test_locks.py",
    ),
    # studies and judging
    m(
        "study/statistics.py",
        "factors = np.arange(order.size, 0, -1)",
        "factors = np.arange(1, order.size + 1)",
        "study/test_statistics.py",
    ),
    m("study/statistics.py", "gap = ours - theirs", "gap = theirs - ours", "study/test_statistics.py"),
    m(
        "study/statistics.py",
        '(1 if better == "high" else -1)',
        '(-1 if better == "high" else 1)',
        "study/test_statistics.py",
    ),
    m(
        "study/statistics.py",
        "sign * tail_mean(sign * known, 0.25)",
        "tail_mean(sign * known, 0.25)",
        "study/test_statistics.py",
    ),
    m(
        "study/cell.py",
        '"seed": evaluation.seed,',
        '"seed": 0,',
        "study/test_cell.py::test_the_id_depends_on_all_but_the_label",
    ),
    m("study/cell.py", '"gamma": env.spec.gamma, ', "", "study/test_cell.py study/test_own.py"),
    m(
        "study/batching.py",
        "(env, cell.steps, cell.points, str(cell.evaluations))",
        "(env, cell.steps, str(cell.evaluations))",
        "study/test_batching.py::test_a_batch_shares_environment_plan_and_evaluations",
    ),
    m("study/store.py", 'get("id", path.stem)) != path.stem:', 'get("id", path.stem)) == "":', "study/test_store.py"),
    m("study/store.py", "entry.stat().st_mtime > _ABANDONED", "entry.stat().st_mtime > 0", "study/test_store.py"),
    m(
        "study/grid.py",
        "once[number - 1 :: count]",
        "once[number :: count]",
        "study/test_grid.py::test_shards_are_a_partition",
    ),
    m("sentinel_paper/judging.py", "paired=True,", "paired=False,", "paper/test_judging.py"),
    m(
        "sentinel_paper/judging.py",
        "spread_interval(found[ours], found[label], LEVEL / len(others))",
        "spread_interval(found[ours], found[label])",
        "paper/test_judging.py",
    ),
    m(
        "sentinel_paper/judging.py",
        "np.hypot(found.sem, paper[1])",
        "found.sem",
        "paper/test_judging.py::test_printed_numbers",
    ),
    m(
        "sentinel_paper/judging.py",
        "found[label] + np.copysign(margin, one.difference)",
        "found[label] - np.copysign(margin, one.difference)",
        "paper/test_judging.py",
    ),
    # environments and risk
    m("envs/cartpole.py", "time >= self.max_steps", "time > self.max_steps", "envs/test_cartpole.py"),
    m("envs/cartpole.py", "self.gravity * sin - cos * u", "self.gravity * sin + cos * u", "envs/test_cartpole.py"),
    m(
        "envs/highway/env.py",
        "self.right_lane_reward * lane / max(self.lanes_count - 1, 1)",
        "self.right_lane_reward * lane / max(self.lanes_count, 1)",
        "envs/highway/test_exactness.py envs/highway/test_settings.py",
    ),
    m("risk/distortion.py", "normal_quantile(u, s) - shift", "normal_quantile(u, s) + shift", "risk/test_oracles.py"),
    m(
        "risk/composite.py",
        "weights * member_values, jnp.ones_like(weights)",
        "weights * member_values, weights",
        "risk/test_composite.py",
    ),
    m(
        "risk/distortion.py",
        "u / jnp.maximum(self.alpha, tiny(u)), 1.0",
        "u * jnp.maximum(self.alpha, tiny(u)), 1.0",
        "risk/test_oracles.py",
    ),
]


class Bench:
    """A copy of the sources in which tests are run.

    Args:
        folder: for the copy and for what JAX compiles.
    """

    def __init__(self, folder: Path):
        self.source = folder / "src"
        shutil.copytree(ROOT / "src", self.source, ignore=shutil.ignore_patterns("__pycache__"))
        compiled = os.environ.get("JAX_COMPILATION_CACHE_DIR", str(folder / "compiled"))
        own = {"PYTHONPATH": str(self.source), "JAX_COMPILATION_CACHE_DIR": compiled}
        self._environment = {**os.environ, "MPLBACKEND": "Agg", "SDL_VIDEODRIVER": "dummy", **own}

    def read(self, file: str) -> str:
        """The text of a file."""
        return (self.source / file).read_text()

    def write(self, file: str, text: str) -> None:
        """Replace a file; what Python has compiled of it goes."""
        path = self.source / file
        path.write_text(text)
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            stale.unlink()

    def test(self, tests: Iterable[str], patience: float | None = PATIENCE) -> tuple[int, str]:
        """Run tests until one fails; returns the exit status of pytest and the end of what it said."""
        places = [f"tests/{test}" for test in tests]
        options = ["-q", "-x", "--no-header", "--tb=line", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *options, *places]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=patience, check=False
            )
        except subprocess.TimeoutExpired:
            return HANGS, f"no end after {patience:.0f} s"
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        return done.returncode, (failed or lines or done.stderr.splitlines() or [""])[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the mutations; returns 1 when one survives without a reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--list", action="store_true", help="show the mutations and make none")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="make only those of these numbers")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a mutation before")
    options = parser.parse_args(arguments)
    numbers = options.only or range(1, len(MUTATIONS) + 1)
    chosen = [(number, MUTATIONS[number - 1]) for number in numbers]
    for number, each in chosen:
        each.applied((ROOT / "src" / each.file).read_text())
        if options.list:
            print(f"{number:3} {each.file}: {each.old!r} -> {each.new!r}" + (f" ({each.reason})" * bool(each.reason)))
    if options.list:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        if not options.unchecked:
            status, said = bench.test(dict.fromkeys(test for _, each in chosen for test in each.tests), patience=None)
            if status != 0:
                print(f"the tests fail without a mutation: {said}")
                return 1
        survived = [number for number, each in chosen if not _caught(bench, number, each)]
    print(f"{len(chosen)} mutations, {len(survived)} survived" + (f": {survived}" if survived else ""))
    return bool(survived)


def _caught(bench: Bench, number: int, mutation: Mutation) -> bool:
    """Make a mutation, run its tests and take it back; returns whether all is well."""
    text, began = bench.read(mutation.file), time.monotonic()
    bench.write(mutation.file, mutation.applied(text))
    status, said = bench.test(mutation.tests)
    bench.write(mutation.file, text)
    caught = status in (FAILED, HANGS)
    verdict = "caught" if caught else f"changes nothing: {mutation.reason}" if mutation.reason else "SURVIVED"
    print(f"{number:3} {verdict} ({time.monotonic() - began:.0f} s) {mutation.file}: {mutation.new!r}", flush=True)
    print(f"      {said[:160]}", flush=True)
    return caught or bool(mutation.reason)


if __name__ == "__main__":
    sys.exit(main())
