import errno
import os
import signal
import time

import pytest

from agents.interruptions import TrainingStopped, resumable, signals_interrupt, stop_if_asked


def test_an_interrupt_becomes_a_sentence_with_the_command(tmp_path):
    message = r"^Stopped by Ctrl-C; .* goes on from its last checkpoint with: python train\.py --resume 'my runs'$"
    command = "python train.py --resume 'my runs'"
    with pytest.raises(TrainingStopped, match=message) as caught, resumable(tmp_path, command):
        raise KeyboardInterrupt
    assert caught.value.exit_code == 130


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "Ctrl-C")])
def test_signals_unwind_the_program_and_their_handlers_are_put_back(number, name, tmp_path, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]

    def wait_for_the_signal():
        with signals_interrupt(), resumable(tmp_path, "python"):
            os.kill(os.getpid(), number)
            time.sleep(5)

    with pytest.raises(TrainingStopped, match=f"Stopped by {name}") as caught:
        wait_for_the_signal()
    assert caught.value.exit_code == 128 + number
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == handlers
    signal.signal(signal.SIGINT, before)


class Finalized:
    """Waits for a signal where nothing can be raised."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stop_that_python_could_not_raise_is_not_lost(tmp_path):
    def go_on_after_the_signal():
        with signals_interrupt(), resumable(tmp_path, "python"):
            Finalized()  # what the handler raises ends here
            stop_if_asked()

    with pytest.raises(TrainingStopped, match="Stopped by SIGTERM"):
        go_on_after_the_signal()
    stop_if_asked()  # of a training that has ended


def test_a_program_that_ignores_ctrl_c_goes_on_doing_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with signals_interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        stop_if_asked()
    assert signal.signal(signal.SIGINT, before) is signal.SIG_IGN


def test_a_full_disk_becomes_a_sentence_and_other_errors_stay(tmp_path):
    message = r"The disk of '.*' is full: free some space; .* with: python$"
    with pytest.raises(TrainingStopped, match=message) as caught, resumable(tmp_path, "python"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.exit_code == 1
    with pytest.raises(PermissionError), resumable(tmp_path, "python"):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    (tmp_path / f".checkpoint.safetensors.{'0a' * 16}.part").write_text("half")
    (tmp_path / ".notes.part").write_text("the user's own")
    with resumable(tmp_path, "python"):
        assert [path.name for path in tmp_path.iterdir()] == [".notes.part"]
