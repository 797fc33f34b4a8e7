"""Agents: pure functions on an explicit state, the protocol they follow, and their names."""

from sentinel_rl.agents.agent import Account, Agent, BaseAgent, FixedPolicy, StateBased
from sentinel_rl.agents.highway import HighwayRule, HighwaySearch
from sentinel_rl.agents.registry import agent_names, make_agent, register_agent
from sentinel_rl.agents.sentinel import SentinelAgent, SentinelState

__all__ = [
    "Account",
    "Agent",
    "BaseAgent",
    "FixedPolicy",
    "HighwayRule",
    "HighwaySearch",
    "SentinelAgent",
    "SentinelState",
    "StateBased",
    "agent_names",
    "make_agent",
    "register_agent",
]
