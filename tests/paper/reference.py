"""Numbers of the paper's analytic figures, computed independently of this code."""

import json
from pathlib import Path

import numpy as np

FIGURES = json.loads((Path(__file__).parents[1] / "reference" / "figure_numbers.json").read_text())


def fixed_mixture():
    """Means, standard deviations and weights of the reference's ``fixed_mixture_instance``."""
    i = np.arange(100)
    weights = 1 / (1 + i)
    return np.sin(i), 0.5 + 0.5 * (i % 7) / 6, weights / weights.sum()


def silent(done, total):
    """A progress report nobody reads."""
    assert 0 <= done <= total
