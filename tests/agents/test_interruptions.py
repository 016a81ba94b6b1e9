import errno
import os
import signal
import time

import pytest

from agents.interruptions import TrainingStopped, resumable, sigterm_interrupts


def test_an_interrupt_becomes_a_sentence_with_the_command(tmp_path):
    folder = tmp_path / "my runs"
    folder.mkdir()
    command = rf"Stopped by Ctrl-C; .* goes on from its last checkpoint with: python train\.py --resume '{folder}'"
    with pytest.raises(TrainingStopped, match=command) as caught, resumable(folder):
        raise KeyboardInterrupt
    assert caught.value.exit_code == 130


def test_sigterm_unwinds_the_program_and_its_handler_is_put_back(tmp_path):
    before = signal.getsignal(signal.SIGTERM)

    def wait_for_the_signal():
        with sigterm_interrupts(), resumable(tmp_path):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    with pytest.raises(TrainingStopped, match="Stopped by SIGTERM") as caught:
        wait_for_the_signal()
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_full_disk_becomes_a_sentence_and_other_errors_stay(tmp_path):
    message = r"The disk of '.*' is full: free some space; .* --resume "
    with pytest.raises(TrainingStopped, match=message) as caught, resumable(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.exit_code == 1
    with pytest.raises(PermissionError), resumable(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / f".checkpoint.safetensors.{'0a' * 16}.part").write_text("half")
    (tmp_path / ".notes.part").write_text("the user's own")
    with resumable(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [".notes.part"]
