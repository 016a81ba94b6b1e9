import pytest

from agents.collapse import CollapseError, CollapseGuard


def test_rewards_that_vanish_several_times_in_a_row_end_the_training():
    guard = CollapseGuard(patience=2)
    guard.check_rollout(largest_reward=0.0, clipped_share=0.1)
    with pytest.raises(CollapseError, match="in each of the last 2 updates every reward was exactly 0; use a smaller"):
        guard.check_rollout(largest_reward=0.0, clipped_share=0.1)


def test_actions_that_all_leave_the_box_end_the_training():
    with pytest.raises(CollapseError, match=r"99\.5% of all actions were clipped"):
        CollapseGuard(patience=1).check_rollout(largest_reward=0.3, clipped_share=0.995)


def test_a_healthy_update_in_between_starts_the_count_again():
    guard = CollapseGuard(patience=2)
    for reward in (0.0, 0.1, 0.0, 0.1):
        guard.check_rollout(largest_reward=reward, clipped_share=0.2)


def test_patience_zero_never_ends_the_training():
    guard = CollapseGuard(patience=0)
    for _ in range(10):
        guard.check_rollout(largest_reward=0.0, clipped_share=1.0)


@pytest.mark.parametrize(("loss", "norm"), [(float("nan"), 1.0), (1.0, float("inf"))])
def test_an_update_that_is_not_finite_ends_the_training_at_once(loss, norm):
    with pytest.raises(CollapseError, match=r"not finite .* the weights of the last update were kept"):
        CollapseGuard(patience=0).check_update(loss=loss, gradient_norm=norm)


def test_negative_patience_is_rejected():
    with pytest.raises(ValueError, match="`collapse_patience` must be at least 0, got -1"):
        CollapseGuard(-1)
