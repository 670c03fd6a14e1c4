"""`evaluate_kernel`: the one tool an agent has, naming candidates by id and never carrying their source."""

from __future__ import annotations

import contextlib
import threading
from typing import Protocol, final

from .describe import describe
from .errors import PlanError
from .evaluation import Evaluation
from .judge import Judge
from .kernel import Kernel

__all__ = ["CandidateStore", "EvaluateKernel", "describe"]


class CandidateStore(Protocol):
    """Where candidates live. `kernel` may raise PlanError with the text's fault, KeyError for no such id."""

    def kernel(self, candidate_id: str) -> Kernel: ...

    def record(self, candidate_id: str, evaluation: Evaluation) -> None: ...


@final
class EvaluateKernel:
    """Evaluates a candidate once; a repeated call returns the evaluation already made.

    Candidates with the same text share an evaluation, recorded for each.
    """

    def __init__(self, judge: Judge, store: CandidateStore) -> None:
        self._judge = judge
        self._store = store
        self._lock = threading.Lock()
        self._by_id: dict[str, Evaluation] = {}
        self._by_key: dict[str, Evaluation] = {}

    def prepare(self, candidate_id: str) -> None:
        """Have the candidate compiled in the background; returns at once."""
        # A text that is no kernel is said when it is evaluated.
        with contextlib.suppress(PlanError):
            self._judge.prepare(self._store.kernel(candidate_id))

    def __call__(self, candidate_id: str) -> Evaluation:
        with self._lock:
            known = self._by_id.get(candidate_id)
            if known is None:
                known = self._by_id[candidate_id] = self._evaluate(candidate_id)
                self._store.record(candidate_id, known)
            return known

    def restore(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Take over an evaluation made before this object was; it is not recorded again."""
        with self._lock:
            self._by_id[candidate_id] = evaluation
            self._by_key[evaluation.kernel_key] = evaluation

    def _evaluate(self, candidate_id: str) -> Evaluation:
        try:
            kernel = self._store.kernel(candidate_id)
        except PlanError as error:
            return self._judge.refuse(candidate_id, error)
        known = self._by_key.get(kernel.key)
        if known is None:
            known = self._by_key[kernel.key] = self._judge.evaluate(kernel)
        return known
