import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import de_gym
from de_gym.controllers import DEFAULT, available, load, load_controller, pretrained, save_controller
from de_gym.controllers.recurrent import POLICY_KINDS, ControllerInfo, RecurrentController
from de_gym.controllers.storage import tensor_checksum
from de_gym.tensor_files import content_checksum


@pytest.fixture
def path(tmp_path, make_controller):
    return save_controller(make_controller(), tmp_path / "controller.safetensors")


def rewrite(path, tensors=None, **changes):
    """Write the file again with other metadata or tensors, under a right checksum; None removes an entry."""
    from safetensors import safe_open

    tensors = tensors or load_file(path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() | changes
    metadata = {key: value for key, value in metadata.items() if value is not None}
    first = metadata.get("format_version") == "1"
    checksum = tensor_checksum(tensors) if first else content_checksum(tensors, metadata)
    save_file(tensors, path, metadata=metadata | {"sha256": checksum})


@pytest.mark.parametrize("policy", POLICY_KINDS)
def test_a_controller_survives_the_round_trip_bit_for_bit(tmp_path, make_controller, policy):
    controller = make_controller(policy)
    again = load_controller(save_controller(controller, tmp_path / "c.safetensors"))
    assert again.tensors.keys() == controller.tensors.keys()
    for name, tensor in controller.tensors.items():
        np.testing.assert_array_equal(again.tensors[name], tensor)
    assert again.info.policy == policy
    assert again.info.preset == "quick"
    assert again.info.env_settings == {"population_size": 5, "num_bins": 2}
    assert again.info.seed == 3
    assert again.info.results == {"return": 1.5}
    assert again.info.package_version == de_gym.__version__


def test_half_precision_halves_the_arrays_and_rounds_to_float16(tmp_path, make_controller):
    controller = make_controller(cell_size=64)
    full = save_controller(controller, tmp_path / "full.safetensors")
    half = save_controller(controller, tmp_path / "half.safetensors", half_precision=True)
    assert half.stat().st_size < 0.55 * full.stat().st_size
    for name, tensor in load_controller(half).tensors.items():
        assert tensor.dtype == np.float32
        np.testing.assert_array_equal(tensor, controller.tensors[name].astype(np.float16))


def test_deterministic_is_chosen_when_loading(path):
    assert load_controller(path, deterministic=True).deterministic
    assert not load_controller(path).deterministic


def test_saving_leaves_no_temporary_file_and_replaces_the_old_one(path, make_controller):
    save_controller(make_controller(cell_size=3), path)
    assert os.listdir(path.parent) == [path.name]
    assert load_controller(path).cell_size == 3


def test_a_failed_write_leaves_the_old_file(path, make_controller, monkeypatch):
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_controller(make_controller(cell_size=3), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_weights_that_are_not_numbers_are_not_saved(tmp_path, make_controller):
    controller = make_controller()
    controller.tensors["mean_bias"][0] = np.nan
    with pytest.raises(ValueError, match="'mean_bias' has NaN or infinite float32 numbers and cannot be saved"):
        save_controller(controller, tmp_path / "c.safetensors")
    controller.tensors["mean_bias"][0] = 1e6
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match="'mean_bias' has NaN or infinite float16 numbers and cannot"),
    ):
        save_controller(controller, tmp_path / "c.safetensors", half_precision=True)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no controller file '.*nowhere.safetensors'"):
        load_controller(tmp_path / "nowhere.safetensors")


@pytest.mark.parametrize("keep", [0, 4, 200, -1])
def test_a_truncated_file_is_recognised(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match="is truncated or not a safetensors file"):
        load_controller(path)


def test_a_foreign_file_is_recognised(path):
    path.write_bytes(b"PK\x03\x04" + bytes(range(256)) * 10)
    with pytest.raises(ValueError, match="is truncated or not a safetensors file"):
        load_controller(path)
    save_file({"x": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="is a safetensors file but not a controller: its 'format' is None"):
        load_controller(path)


def test_an_unknown_format_version_is_recognised(path):
    rewrite(path, format_version="99")
    with pytest.raises(ValueError, match=r"format version '99'; this version of the package reads '1' and '2'"):
        load_controller(path)


def test_a_flipped_weight_bit_is_recognised(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="does not match its checksum: the file is damaged"):
        load_controller(path)


@pytest.mark.parametrize(
    ("written", "changed"), [(b"sigmoid-constant", b"linear-constant "), (b"num_bins", b"num_cins")]
)
def test_another_decision_process_in_the_header_is_recognised(path, written, changed):
    content = path.read_bytes()
    assert content.count(written) == 1
    path.write_bytes(content.replace(written, changed))
    with pytest.raises(ValueError, match="does not match its checksum: the file is damaged"):
        load_controller(path)


def test_the_same_controller_gives_the_same_bytes(path, make_controller):
    again = save_controller(make_controller(), path.with_name("again.safetensors"))
    assert again.read_bytes() == path.read_bytes()


def test_files_of_the_first_version_still_load(path):
    before = load_controller(path)
    rewrite(path, format_version="1")
    again = load_controller(path)
    assert again.info == before.info
    np.testing.assert_array_equal(again.tensors["mean_weight"], before.tensors["mean_weight"])
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"The weights in .* do not match their checksum: the file is damaged"):
        load_controller(path)


@pytest.mark.parametrize("version", ["1", "2"])
def test_weights_that_are_not_numbers_are_not_loaded(path, version):
    spoiled = load_file(path)
    spoiled["mean_bias"][0] = np.nan
    rewrite(path, tensors=spoiled, format_version=version)
    with pytest.raises(ValueError, match=r"The array 'mean_bias' in '.*' has NaN or infinity"):
        load_controller(path)


def test_settings_that_contradict_the_arrays_are_recognised(path):
    rewrite(path, env_settings=json.dumps({"population_size": 6}))
    with pytest.raises(ValueError, match="cannot be used: its settings say populations of 6, its arrays 5"):
        load_controller(path)
    rewrite(path, env_settings="{}", seed=json.dumps("three"))
    with pytest.raises(ValueError, match="its 'seed' must be an integer or null, got"):
        load_controller(path)


def test_wrong_shapes_are_recognised(path):
    rewrite(path, tensors=load_file(path) | {"mean_bias": np.zeros(9, dtype=np.float32)})
    with pytest.raises(ValueError, match=r"cannot be used: .* mean_bias: \(9,\) instead of \(10,\)"):
        load_controller(path)


def test_an_unknown_policy_kind_is_recognised(path):
    rewrite(path, policy="transformer")
    with pytest.raises(ValueError, match="cannot be used: Unknown policy kind 'transformer'"):
        load_controller(path)


def test_missing_or_malformed_metadata_is_recognised(path):
    rewrite(path, env_settings=json.dumps([1]))
    with pytest.raises(ValueError, match=r"its 'env_settings' must be a JSON object, got '\[1\]'"):
        load_controller(path)
    rewrite(path, env_settings="{")
    with pytest.raises(ValueError, match="cannot be used"):
        load_controller(path)
    rewrite(path, env_settings=None)
    with pytest.raises(ValueError, match="lacks its entry 'env_settings'"):
        load_controller(path)


def test_a_wrong_population_size_is_recognised(path):
    assert load_controller(path, population_size=5).population_size == 5
    with pytest.raises(ValueError, match=r"trained for populations of 5 individuals, got `population_size` 50"):
        load_controller(path, population_size=50)


def test_load_takes_a_path_or_a_known_name(path):
    assert load(path).population_size == 5
    assert load(str(path), population_size=5).cell_size == 6
    with pytest.raises(ValueError, match="Unknown controller 'no-such-controller'"):
        load("no-such-controller")


def test_a_packaged_controller_is_checked_against_the_table(path, monkeypatch):
    (path.parent / "weights").mkdir()
    monkeypatch.setattr(pretrained, "files", lambda _: path.parent)
    (path.parent / "weights" / "tiny.safetensors").write_bytes(path.read_bytes())
    import hashlib

    monkeypatch.setattr(pretrained, "CHECKSUMS", {"tiny": hashlib.sha256(path.read_bytes()).hexdigest()})
    assert available() == ("tiny",)
    assert load("tiny").cell_size == 6
    monkeypatch.setattr(pretrained, "CHECKSUMS", {"tiny": "0" * 64})
    with pytest.raises(ValueError, match="packaged controller 'tiny' does not match its checksum"):
        load("tiny")


@pytest.mark.parametrize("name", [name for name in available() if name != DEFAULT])
def test_every_packaged_controller_loads(name):
    assert load(name).info.env_settings["population_size"] == load(name).population_size


def test_info_defaults_are_those_of_an_unnamed_controller(make_controller):
    assert RecurrentController(make_controller().tensors, ControllerInfo("sigmoid-constant")).info.preset == ""
