"""Reinforcement learning that must justify its risks."""

__version__ = "0.1.0"
