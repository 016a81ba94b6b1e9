from __future__ import annotations

import numpy as np
import pytest

from de_gym.baselines.reproduce import CONFIGURATIONS, ReproduceConfig, main, reproduce
from de_gym.baselines.stored import StoredResults, load_results, read_results, write_results


def test_results_survive_a_round_trip(tmp_path):
    results = StoredResults(
        np.array([1, 3]), np.arange(4.0).reshape(2, 2), np.ones((2, 2), np.int64), {"algorithm": "de", "seed": 5}
    )
    write_results(tmp_path / "file.npz", results)
    read = read_results(tmp_path / "file.npz")
    assert np.array_equal(read.functions, results.functions)
    assert np.array_equal(read.errors, results.errors)
    assert np.array_equal(read.evaluations, results.evaluations)
    assert read.metadata == {"algorithm": "de", "seed": 5}
    assert [path.name for path in tmp_path.iterdir()] == ["file.npz"]


def test_missing_results_name_those_there_are():
    with pytest.raises(ValueError, match="Unknown stored results 'cec2017_10d_none'"):
        load_results("cec2017", 10, "none")


def small_config(directory, **changes):
    settings = {"algorithms": ("de", "jso-lde-paper"), "functions": (1, 5), "num_runs": 3, "max_evaluations": 2_000}
    return ReproduceConfig(out=directory, **{**settings, **changes})


def test_interrupted_runs_go_on_and_equal_uninterrupted_ones(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    path = reproduce(small_config(whole), "de")
    resumed = reproduce(small_config(parts, functions=(1,)), "de")
    stamp = read_results(resumed)
    resumed = reproduce(small_config(parts), "de")
    assert np.array_equal(read_results(resumed).errors, read_results(path).errors)
    assert np.array_equal(read_results(resumed).errors[:1], stamp.errors)
    assert read_results(path).metadata["settings"]["scale_factor"] == 0.5


def test_other_settings_do_not_mix_into_a_file(tmp_path):
    reproduce(small_config(tmp_path), "de")
    with pytest.raises(ValueError, match="holds results of other runs"):
        reproduce(small_config(tmp_path, seed=1), "de")


def test_the_command_writes_one_file_per_algorithm(tmp_path, capsys):
    main(small_config(tmp_path / "new"))
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == ["cec2017_10d_de.npz", "cec2017_10d_jso-lde-paper.npz"]
    assert "cec2017_10d_de.npz" in capsys.readouterr().out


def test_unknown_algorithms_are_named_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match=r"Unknown algorithm 'jade2'\. Did you mean 'jade'\?"):
        main(small_config(tmp_path / "new", algorithms=("jade2",)))
    assert not (tmp_path / "new").exists()


def test_jso_comes_in_two_configurations():
    assert CONFIGURATIONS["jso"]().settings.initial_scale_factor == 0.3
    assert CONFIGURATIONS["jso-lde-paper"]().settings.initial_scale_factor == 0.5
