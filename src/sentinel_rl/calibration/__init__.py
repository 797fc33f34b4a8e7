"""Laws judged by what happened: calibration, a map that corrects them, and knowing when not to act."""

from sentinel_rl.calibration.calibrate import Calibration, LawScore, calibrate
from sentinel_rl.calibration.figures import draw_calibration, draw_handover
from sentinel_rl.calibration.files import load_recalibration, save_calibration
from sentinel_rl.calibration.handover import Handover, hand_over
from sentinel_rl.calibration.ignorance import diversity, draw_ignorance, ignorance, separations

__all__ = [
    "Calibration",
    "Handover",
    "LawScore",
    "calibrate",
    "diversity",
    "draw_calibration",
    "draw_handover",
    "draw_ignorance",
    "hand_over",
    "ignorance",
    "load_recalibration",
    "save_calibration",
    "separations",
]
