"""``minimize``, the front door, and the parts behind it: from a user's function and bounds to a run and its result."""
