"""The environments' names in gymnasium's registry.

An installation announces ``register_environments`` as an entry point, which gymnasium calls when it is imported, so
that ``gymnasium.make("DEParamControl-v0")`` needs no other import.
"""

from __future__ import annotations

_ENVIRONMENTS = ("DEParamControl", "AdaptiveDEControl")


def register_environments() -> None:
    """Register all environments that are not registered yet; doing so twice would raise a warning."""
    # The package itself may be in the middle of its own import, with this as a part of it.
    from gymnasium.envs.registration import register, registry

    for name in _ENVIRONMENTS:
        if f"{name}-v0" not in registry:
            register(
                id=f"{name}-v0",
                entry_point=f"de_gym.envs:{name}Env",
                vector_entry_point=f"de_gym.envs:{name}VectorEnv",
            )
