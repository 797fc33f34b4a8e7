"""Risk measures: numbers from laws and beliefs, in the units of the return, higher is better."""

from sentinel_rl.risk.assessment import Assessment, assess
from sentinel_rl.risk.coherence import CoherenceReport, Counterexample, check_coherence
from sentinel_rl.risk.composite import Additive, BeliefMeasure, Composite
from sentinel_rl.risk.deviation import MeanSemideviation, MeanStd, MeanVariance
from sentinel_rl.risk.distortion import (
    CPW,
    CVaR,
    Distortion,
    DualPower,
    Expectation,
    MinMaxVar,
    ProportionalHazard,
    VaR,
    Wang,
)
from sentinel_rl.risk.extreme import BestCase, WorstCase
from sentinel_rl.risk.measure import RiskMeasure
from sentinel_rl.risk.parse import parse_risk
from sentinel_rl.risk.utility import Entropic, EVaR

__all__ = [
    "CPW",
    "Additive",
    "Assessment",
    "BeliefMeasure",
    "BestCase",
    "CVaR",
    "CoherenceReport",
    "Composite",
    "Counterexample",
    "Distortion",
    "DualPower",
    "EVaR",
    "Entropic",
    "Expectation",
    "MeanSemideviation",
    "MeanStd",
    "MeanVariance",
    "MinMaxVar",
    "ProportionalHazard",
    "RiskMeasure",
    "VaR",
    "Wang",
    "WorstCase",
    "assess",
    "check_coherence",
    "parse_risk",
]
