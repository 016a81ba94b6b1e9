"""Seeds of one update, derived from the root seed, the number of the update and of its block, and from nothing else."""

from __future__ import annotations

import numpy as np
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv


def seed_update(env: VecEnv, root_seed: int, update: int, block: int = 0) -> None:
    """Seed torch's generators at once, and the environments at their next reset.

    Each block of an update has seeds of its own; the first has those of an update that is not divided.
    The state of no generator then has to be saved to continue a training exactly where it stopped.
    """
    env_seed, torch_seed = np.random.SeedSequence([root_seed, update, block]).generate_state(2)
    # Run i gets env_seed + i, which must stay a valid 32-bit seed for every library involved.
    env.seed(int(env_seed % 2**31))
    set_random_seed(int(torch_seed))
