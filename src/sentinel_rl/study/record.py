"""What came out of a cell."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from sentinel_rl.study.cell import Cell


@dataclasses.dataclass(frozen=True)
class Record:
    """The result of a cell.

    Every array but ``steps`` has the runs on its leading axis, in the order of the cell's seeds. The numbers of a run
    that has failed are NaN.

    - ``steps`` ``[P]``: step counts at which the curves are given, each for the stretch since the one before;
    - ``terminations``, ``episodes``: falls or crashes in training, and all episodes that ended in it;
    - ``terminations_curve`` ``[S, P]``: cumulative;
    - ``return_curve`` ``[S, P]``: mean undiscounted return of the episodes that ended in the stretch, NaN if none did;
    - ``train_return_mean``, ``train_discounted_mean``, ``train_discounted_tail``: over all episodes of training; the
      tail is CVaR 0.25;
    - ``metric/NAME`` ``[S, P]``: means of what updates tell (``loss``, ``clip_low``, ``clip_high``; NaN where there was
      none), and what the agent tells of its preferred action, averaged over its latest 64 observations
      (SENTINEL: ``aleatory``, ``epistemic``, ``composite``), looked at some forty times in a run and repeated between;
    - ``eval/EVALUATION/discounted``, ``reward``, ``length``, ``terminated`` ``[S, E]``: episodes of the frozen policy;
    - ``eval/EVALUATION/actions`` ``[S, A]``: shares of its decisions; on the highway also ``speed`` (bins of 1 m/s from
      0) and ``lane`` (0 is the left-most);
    - SENTINEL only: ``eval/EVALUATION/aleatory`` and ``epistemic``: mean penalties of the action taken;
      ``eval/EVALUATION/differs_additive`` and ``differs_neutral``: shares of the decisions in which the additive or the
      risk-neutral values of the same networks prefer another action; ``choices/additive`` and ``choices/neutral`` are
      those of the first evaluation.

    Args:
        cell: what was asked for.
        arrays: see above.
        about: ``seconds`` (``training``, ``evaluating`` and ``compiling`` apart, and ``wall``), ``failures`` by seed,
            ``device``, ``versions``, ``machine``, ``revision``, ``finished``.
    """

    cell: Cell
    arrays: Mapping[str, np.ndarray]
    about: Mapping[str, Any]

    @property
    def failures(self) -> Mapping[int, str]:
        """The runs that have failed, by seed, and why."""
        return {int(seed): why for seed, why in self.about.get("failures", {}).items()}
