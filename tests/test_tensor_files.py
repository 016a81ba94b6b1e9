"""Arrays and metadata in one file that recognises damage."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from de_gym.tensor_files import check_tensor_file, content_checksum, read_tensor_file, write_tensor_file

TENSORS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "step": np.array(3.0, dtype=np.float32),
    "half": np.ones(3, dtype=np.float16),
}
METADATA = {"format": "test", "updates": "3", "name": "süß"}


@pytest.fixture
def path(tmp_path):
    write_tensor_file(tmp_path / "file.safetensors", TENSORS, METADATA)
    return tmp_path / "file.safetensors"


def test_what_was_written_is_read(path):
    content = read_tensor_file(path)
    check_tensor_file(path, content)
    assert content.metadata.items() > METADATA.items()
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(content.tensors[name], tensor)
        assert content.tensors[name].dtype == tensor.dtype
    assert load_file(path).keys() == TENSORS.keys()  # any reader of safetensors can


def test_equal_contents_give_equal_bytes_in_every_order_and_every_process(path, tmp_path):
    other = tmp_path / "other.safetensors"
    write_tensor_file(other, dict(reversed(TENSORS.items())), dict(reversed(METADATA.items())))
    assert other.read_bytes() == path.read_bytes()
    code = f"""
import numpy as np
from pathlib import Path
from de_gym.tensor_files import write_tensor_file
tensors = {{
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "step": np.array(3.0, dtype=np.float32),
    "half": np.ones(3, dtype=np.float16),
}}
write_tensor_file(Path({str(other)!r}), tensors, {METADATA!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONHASHSEED": "7"})
    assert other.read_bytes() == path.read_bytes()


def test_every_single_flipped_bit_is_recognised(path):
    content = path.read_bytes()
    positions = random.Random(0).sample(range(8 * len(content)), 800)
    for position in positions:
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"does not match its checksum|is truncated or not a safetensors file"):
            check_tensor_file(path, read_tensor_file(path))


@pytest.mark.parametrize(
    ("tensors", "metadata"),
    [
        (TENSORS, METADATA | {"updates": "4"}),
        (TENSORS, METADATA | {"more": ""}),
        (TENSORS, {"format": "test", "updates": "3"}),
        ({"weight": TENSORS["weight"], "step": TENSORS["step"]}, METADATA),
        (TENSORS | {"weight": TENSORS["weight"].reshape(3, 2)}, METADATA),
        (TENSORS | {"weight": TENSORS["weight"].view(np.int32)}, METADATA),
        (TENSORS | {"weight": TENSORS["weight"][::-1]}, METADATA),
        (TENSORS | {"step": TENSORS["half"], "half": TENSORS["step"]}, METADATA),
    ],
)
def test_the_checksum_covers_everything(tensors, metadata):
    assert content_checksum(tensors, metadata) != content_checksum(TENSORS, METADATA)


def test_numbers_that_are_none_are_neither_written_nor_read(path):
    before = path.read_bytes()
    spoiled = TENSORS | {"half": np.array([1.0, np.inf], dtype=np.float16)}
    with pytest.raises(ValueError, match="Array 'half' has NaN or infinite float16 numbers and cannot be saved"):
        write_tensor_file(path, spoiled, METADATA)
    assert path.read_bytes() == before
    save_file(spoiled, path, METADATA | {"sha256": content_checksum(spoiled, METADATA)})
    with pytest.raises(ValueError, match=r"The array 'half' in '.*' has NaN or infinity"):
        check_tensor_file(path, read_tensor_file(path))


def test_types_that_numpy_does_not_know_are_reported(tmp_path):
    header = b'{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    content = len(header).to_bytes(8, "little") + header + bytes(4)
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="is truncated or not a safetensors file"):
        read_tensor_file(tmp_path / "file")
