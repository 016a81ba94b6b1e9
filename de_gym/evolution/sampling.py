"""Random control parameters from uniforms and normals: the distributions that adaptive methods share."""

from __future__ import annotations

import math

from de_gym.machine.compiling import inlined

# The smallest quantiles round to zero or below; a factor of zero would make the Lehmer mean undefined.
_SMALLEST_POSITIVE = 1e-15


@inlined
def cauchy(uniform: float, location: float, spread: float) -> float:
    """Return the Cauchy number location + spread tan(pi (u - 1/2))."""
    return location + spread * math.tan(math.pi * (uniform - 0.5))


@inlined
def share_positive(location: float, spread: float) -> float:
    """Return the probability that a Cauchy number is positive."""
    return 0.5 + math.atan(location / spread) / math.pi


@inlined
def positive_cauchy(uniform: float, location: float, spread: float, share: float) -> float:
    """Return a Cauchy number given that it is positive, set to 1 where it exceeds that.

    The papers redraw until a number is positive. One uniform mapped to the part of (0, 1] whose quantiles are positive
    has the same distribution and always costs one draw; ``share`` is that part, from ``share_positive``.
    """
    return min(max(cauchy(1.0 - share * uniform, location, spread), _SMALLEST_POSITIVE), 1.0)


@inlined
def clipped_normal(normal: float, mean: float, spread: float) -> float:
    """Return mean + spread z, clipped to [0, 1]."""
    return min(max(mean + spread * normal, 0.0), 1.0)
