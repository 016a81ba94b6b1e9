from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from de_gym.evolution.sampling import cauchy, clipped_normal, positive_cauchy, share_positive


def test_cauchy_numbers_follow_the_distribution(rng):
    samples = [cauchy(uniform, 0.65, 0.1) for uniform in rng.random(20_000)]
    assert stats.kstest(samples, stats.cauchy(0.65, 0.1).cdf).pvalue > 0.01


@pytest.mark.parametrize("location", [0.5, 0.05])
def test_positive_cauchy_numbers_equal_redrawing_until_positive(rng, location):
    share = share_positive(location, 0.1)
    samples = np.array([positive_cauchy(uniform, location, 0.1, share) for uniform in rng.random(20_000)])
    redrawn = stats.cauchy(location, 0.1).rvs(60_000, random_state=rng)
    redrawn = np.minimum(redrawn[redrawn > 0.0][:20_000], 1.0)
    assert samples.min() > 0.0
    assert samples.max() == 1.0
    assert stats.ks_2samp(samples, redrawn).pvalue > 0.01


def test_positive_cauchy_numbers_stay_positive_at_the_ends_of_the_uniforms():
    share = share_positive(0.5, 0.1)
    assert positive_cauchy(0.0, 0.5, 0.1, share) == 1.0
    assert 0.0 < positive_cauchy(np.nextafter(1.0, 0.0), 0.5, 0.1, share) < 1e-12


@pytest.mark.parametrize(("normal", "number"), [(1.0, 0.6), (-1.0, 0.4), (9.0, 1.0), (-9.0, 0.0)])
def test_normals_are_scaled_shifted_and_clipped(normal, number):
    assert clipped_normal(normal, 0.5, 0.1) == pytest.approx(number)
