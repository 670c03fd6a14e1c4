"""Compile jobs in the background: the urgent ones first, equal ones once, none that nobody wants any more.

Threads are daemons that end when there is nothing left to do: a process that ends waits for no compile.
Builds are kept on disk by their compiler; failures are remembered here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from kernel_scientist.sandbox.compilation import CompileFailure
from kernel_scientist.sandbox.processes import stoppable

__all__ = ["CompileQueue"]

T = TypeVar("T")

_MOST_THREADS = 4
_FAILURES_KEPT = 64


@dataclass(slots=True)
class _Job:
    key: Hashable
    work: Callable[[], Any]
    urgent: bool
    waiting: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    future: Future[Any] = field(default_factory=Future[Any])

    @property
    def over(self) -> bool:
        return self.stop.is_set() or self.future.cancelled()


@final
class CompileQueue:
    """Runs jobs in `threads` threads, by default one for each core but the one that times kernels.

    An urgent job has one thread more: it waits for no job that was begun for another purpose.
    """

    def __init__(self, threads: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0))
        self._most = threads if threads is not None else max(1, min(_MOST_THREADS, cores - 1))
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting: list[_Job] = []
        self._jobs: dict[Hashable, _Job] = {}
        self._failures: dict[Hashable, Future[Any]] = {}

    def submit(
        self, key: Hashable, work: Callable[[], T], *, urgent: bool = False, ahead: bool = False
    ) -> Future[T]:
        """Have `work` done; a job of the same `key` that is not over is joined, and hurried if `urgent`.

        The caller waits for the result until it calls `release`, unless the work is done `ahead` of need.
        """
        with self._lock:
            if key in self._failures:
                return self._failures[key]
            job = self._jobs.get(key)
            if job is None or job.over:
                job = self._jobs[key] = _Job(key, work, urgent)
                self._waiting.append(job)
            job.waiting += not ahead
            self._begin(job, urgent=urgent)
            return job.future

    def hurry(self, key: Hashable, future: Future[Any]) -> None:
        """Make the job of `key` that `future` came from an urgent one, if it is not over."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and job.future is future:
                self._begin(job, urgent=True)

    def release(self, key: Hashable, future: Future[Any]) -> None:
        """Wait for `future` of `key` no more: if nobody else does, it is not begun, or its command killed."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.future is not future:
                return
            job.waiting -= 1
            if job.waiting == 0 and not job.future.cancel():
                job.stop.set()

    def _begin(self, job: _Job, *, urgent: bool) -> None:
        job.urgent = job.urgent or urgent
        if self._waiting and self._threads < self._most + urgent:
            self._threads += 1
            threading.Thread(target=self._run, name="compile", daemon=True).start()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                with stoppable(job.stop):
                    result = job.work()
            except BaseException as error:
                # For whoever waits for the job, if anybody does: it may have been done in advance.
                self._forget(job, failed=False)
                job.future.set_exception(error)
            else:
                self._forget(job, failed=isinstance(result, CompileFailure))
                job.future.set_result(result)

    def _next(self) -> _Job | None:
        """The first urgent job, else the first; the thread that gets ``None`` has ended."""
        with self._lock:
            while job := self._choose():
                self._waiting.remove(job)
                if job.future.set_running_or_notify_cancel():
                    return job
                self._drop(job)
            self._threads -= 1
            return None

    def _choose(self) -> _Job | None:
        first = next((one for one in self._waiting if one.urgent), None)
        if first is None and self._threads <= self._most:
            first = next(iter(self._waiting), None)
        return first

    def _forget(self, job: _Job, *, failed: bool) -> None:
        with self._lock:
            self._drop(job)
            if failed:
                self._failures[job.key] = job.future
                while len(self._failures) > _FAILURES_KEPT:
                    del self._failures[next(iter(self._failures))]

    def _drop(self, job: _Job) -> None:
        if self._jobs.get(job.key) is job:
            del self._jobs[job.key]
