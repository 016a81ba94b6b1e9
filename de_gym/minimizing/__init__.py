"""The parts behind ``de_gym.minimize``: from a user's function and bounds to a run and its result."""
