"""The one error for unknown names."""

from __future__ import annotations

import pytest

from de_gym.registry import lookup, unknown_name_message


def test_known_names_are_found():
    assert lookup("thing", "one", {"one": 1}) == 1


def test_unknown_names_list_the_choices_and_the_closest():
    with pytest.raises(ValueError, match=r"Unknown thing 'on'. Did you mean 'one'\? Available: one, two."):
        lookup("thing", "on", {"one": 1, "two": 2})


def test_nothing_close_gives_no_hint():
    assert unknown_name_message("thing", "zzz", ["one"]) == "Unknown thing 'zzz'. Available: one."
