"""The official data: which numbers belong to which function."""

from __future__ import annotations

import sys
from importlib import resources

import numpy as np
import pytest

from de_gym.problems import data


def _package_array(suite: str, dimension: int, key: str) -> np.ndarray:
    path = resources.files("surfaces_cec_data") / suite / f"{suite}_data_dim{dimension}.npz"
    with resources.as_file(path) as file, np.load(file) as archive:
        return archive[key]


def test_cec2013_shifts_are_slices_of_one_stream_not_rows():
    first_row = _package_array("cec2013", 100, "shift_1")
    second_row = _package_array("cec2013", 100, "shift_2")
    np.testing.assert_array_equal(data.shift_2013(3, 10), first_row[30:40])
    np.testing.assert_array_equal(data.shift_2013(3, 30), np.concatenate([first_row[90:], second_row[:20]]))
    np.testing.assert_array_equal(data.shift_2013(1, 100), second_row)


def test_cec2013_rotations_are_orthogonal_and_counted_from_zero():
    rotation = data.rotation_2013(4, 30)
    np.testing.assert_array_equal(rotation, _package_array("cec2013", 30, "rotation_5"))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(30), atol=1e-12)


def test_cec2017_components_have_their_own_rows():
    np.testing.assert_array_equal(data.shift_2017(23, 2, 10), _package_array("cec2017", 10, "shift_23_2"))
    np.testing.assert_array_equal(data.rotation_2017(23, 2, 10), _package_array("cec2017", 10, "rotation_23_2"))
    np.testing.assert_array_equal(data.shift_2017(5, 0, 10), _package_array("cec2017", 10, "shift_5"))


@pytest.mark.parametrize(("number", "component"), [(11, 0), (20, 0), (29, 2), (30, 1)])
def test_cec2017_permutations_count_from_zero(number, component):
    assert sorted(data.permutation_2017(number, component, 30)) == list(range(30))


def test_a_missing_data_package_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "surfaces_cec_data", None)
    data._archive.cache_clear()
    with pytest.raises(ImportError, match=r"pip install surfaces-cec-data"):
        data.rotation_2013(0, 10)
