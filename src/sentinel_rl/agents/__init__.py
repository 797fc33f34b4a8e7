"""Agents: pure functions on an explicit state."""
