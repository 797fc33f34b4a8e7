"""Runners: the same agents in a jitted scan over JAX environments, or in a host loop over any Gymnasium one."""
