"""Agents that learn to control Differential Evolution, in Stable-Baselines3 style."""
