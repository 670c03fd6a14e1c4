"""The core on which kernels are timed is left to them, by every thread and child of this process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from kernel_scientist.sandbox.cores import off_core, reserved_core
from kernel_scientist.sandbox.load import sample_load

CORES = os.sched_getaffinity(0)
CORE = max(CORES)

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="there is one core only")


@pytest.fixture
def sleeper() -> Iterator[int]:
    """The id of another thread of this process, which only waits."""
    wake, begun = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (begun.set(), wake.wait(30.0)))
    thread.start()
    begun.wait(30.0)
    assert thread.native_id is not None
    yield thread.native_id
    wake.set()
    thread.join()


def test_a_reserved_core_is_left_by_every_thread_and_given_back(sleeper: int) -> None:
    with reserved_core(CORE):
        assert CORE not in os.sched_getaffinity(0)
        assert CORE not in os.sched_getaffinity(sleeper)
    assert os.sched_getaffinity(0) == CORES
    assert os.sched_getaffinity(sleeper) == CORES


def test_a_thread_begun_while_a_core_is_reserved_may_use_it_afterwards() -> None:
    wake = threading.Event()
    thread = threading.Thread(target=wake.wait, args=(30.0,))
    with reserved_core(CORE):
        thread.start()
        assert thread.native_id is not None
        assert CORE not in os.sched_getaffinity(thread.native_id)
    assert os.sched_getaffinity(thread.native_id) == CORES
    wake.set()
    thread.join()


def test_what_keeps_off_a_core_stays_off_it_when_a_reservation_ends() -> None:
    with off_core(CORE):
        with reserved_core(CORE):
            pass
        assert CORE not in os.sched_getaffinity(0)
    assert os.sched_getaffinity(0) == CORES


def test_a_thread_that_had_to_leave_before_is_not_brought_there(sleeper: int) -> None:
    os.sched_setaffinity(sleeper, CORES - {CORE})
    with reserved_core(CORE):
        pass
    assert os.sched_getaffinity(sleeper) == CORES - {CORE}


def test_the_load_of_other_programs_is_seen_and_ones_own_is_not() -> None:
    before = sample_load(CORES)
    assert before is not None
    spin = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = sample_load(CORES)
    assert after is not None
    assert after.own_s - before.own_s >= 0.5
    assert after.busy_s - before.busy_s >= 0.4
    assert before.until(after).cores == len(CORES)
