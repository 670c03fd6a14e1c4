"""``ssh://user@host``: judge and worker on another machine, with a target of that machine's own.

Covered: the program puts itself there and uses only what it put; a candidate in flight when the connection
is lost is judged again on a new one. Not covered: what the machine does besides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, final

from kernel_scientist.sandbox.errors import UnusableEnvironment
from kernel_scientist.sandbox.remote.address import SshAddress
from kernel_scientist.sandbox.remote.deployment import bundle_files, files_below

from ..evaluation import Comparison, Evaluation
from ..kernel import Kernel
from ..problem import Problem
from ..remote.client import Link, Patience, RemoteMachine
from ..remote.messages import (
    CompareRequest,
    EvaluateRequest,
    KernelText,
    Opened,
    OpenRequest,
    PrepareRequest,
    RefuseRequest,
    Request,
    TargetFacts,
    TargetRequest,
    parse_comparison,
    parse_evaluation,
    parse_reply,
)
from ..settings import JudgeSettings, Tier

if TYPE_CHECKING:
    import numpy as np

__all__ = ["SshTarget"]

_MOST_PROBLEM_BYTES = 1 << 26
_NUMBERS = itertools.count()

Message = Mapping[str, Any]
T = TypeVar("T")


@final
class SshTarget:
    """The target of the machine at `address`; connects at once, and says so in `device`.

    RemoteFault or UnusableEnvironment when that machine cannot be used.
    """

    def __init__(
        self, address: str | SshAddress, *, allow_no_sandbox: bool = False, patience: Patience | None = None
    ) -> None:
        place = address if isinstance(address, SshAddress) else SshAddress.parse(address)
        self.machine = RemoteMachine(place, patience)
        self._request = TargetRequest(name=place.target, allow_no_sandbox=allow_no_sandbox)
        self._facts: TargetFacts | None = None
        self._facts = self.call(lambda _link: self.facts)

    @property
    def facts(self) -> TargetFacts:
        assert self._facts is not None
        return self._facts

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def target_class(self) -> str:
        return self.facts.target_class

    @property
    def device(self) -> str:
        return f"{self.facts.device}, at {self.machine.address.destination}"

    @property
    def sandbox(self) -> str:
        return self.facts.sandbox

    def assessor(
        self, problem: Problem, settings: JudgeSettings, seeds: np.random.SeedSequence
    ) -> RemoteAssessor:
        return RemoteAssessor(self, problem, settings, seeds)

    def call(self, work: Callable[[Link], T]) -> T:
        """`RemoteMachine.call` on a connection whose far end has opened its target."""
        return self.machine.call(lambda link: work(self._ready(link)))

    def _ready(self, link: Link) -> Link:
        if not link.has_target:
            facts = parse_reply(TargetFacts, link.ask(self._request))
            if self._facts not in (None, facts):
                raise UnusableEnvironment(
                    f"{self.machine.address} was {self.facts.device} ({self.facts.name}) and is "
                    f"{facts.device} ({facts.name}) now; times of the two cannot be compared."
                )
            self._facts, link.has_target = facts, True
        return link


@final
class RemoteAssessor:
    """Evaluates kernels of one problem there; evaluations are values of the same kind as local ones."""

    def __init__(
        self, target: SshTarget, problem: Problem, settings: JudgeSettings, seeds: np.random.SeedSequence
    ) -> None:
        self._target = target
        self._problem = problem
        self._settings = settings
        self._seeds = seeds
        self._spawned = seeds.n_children_spawned
        self._number = next(_NUMBERS)
        self._bundle = bundle_files(files_below(problem.folder, most_bytes=_MOST_PROBLEM_BYTES))
        # A fault of the problem is said before anything is evaluated, as it is here.
        target.call(self._opened)

    def prepare(self, kernel: Kernel) -> None:
        request = PrepareRequest(assessor=self._number, kernel=_text(kernel))
        self._target.machine.offer(self._number, request)

    def refuse(self, kernel: Kernel, baseline: Kernel, tier: Tier) -> Evaluation | None:
        request = RefuseRequest(
            assessor=self._number, kernel=_text(kernel), baseline=_text(baseline), tier=tier
        )

        def read(reply: Message) -> Evaluation | None:
            return None if reply == {"evaluation": None} else self._evaluation(reply, kernel, baseline, tier)

        return self._ask(request, read)

    def evaluate(self, kernel: Kernel, baseline: Kernel | None, tier: Tier) -> Evaluation:
        against = None if baseline is None else _text(baseline)
        request = EvaluateRequest(assessor=self._number, kernel=_text(kernel), baseline=against, tier=tier)
        evaluation = self._ask(
            request, lambda reply: self._evaluation(reply, kernel, baseline or kernel, tier)
        )
        self._spawned += 1
        return evaluation

    def compare(self, a: Kernel, b: Kernel) -> Comparison:
        request = CompareRequest(assessor=self._number, a=_text(a), b=_text(b))

        def read(reply: Message) -> Comparison:
            comparison = parse_comparison(reply.get("comparison"), key_a=a.key, key_b=b.key)
            return replace(comparison, a=self._placed(comparison.a), b=self._placed(comparison.b))

        comparison = self._ask(request, read)
        self._spawned += 2
        return comparison

    def _ask(self, request: Request, read: Callable[[Message], T]) -> T:
        return self._target.call(lambda link: read(self._opened(link).ask(request)))

    def _opened(self, link: Link) -> Link:
        """`link`, once this assessor is open on it."""
        if self._number not in link.opened:
            self._open(link)
            link.opened.add(self._number)
        return link

    def _open(self, link: Link) -> None:
        entropy = self._seeds.entropy
        request = OpenRequest(
            assessor=self._number,
            digest=self._bundle.digest,
            name=_folder_name(self._problem),
            shown=str(self._problem.folder)[-2000:],
            settings=self._settings,
            entropy=[entropy] if isinstance(entropy, int) else list(entropy or ()),
            spawn_key=list(self._seeds.spawn_key),
            spawned=self._spawned,
        )
        if parse_reply(Opened, link.ask(request)).opened:
            return
        if not parse_reply(Opened, link.ask(request, self._bundle.blob)).opened:
            raise ValueError("the problem was sent, and is asked for again")

    def _evaluation(self, reply: Message, kernel: Kernel, baseline: Kernel, tier: Tier) -> Evaluation:
        return self._placed(
            parse_evaluation(
                reply.get("evaluation"), kernel_key=kernel.key, baseline_key=baseline.key, tier=tier
            )
        )

    def _placed(self, evaluation: Evaluation) -> Evaluation:
        """`evaluation`, naming this target's device: which machine is no matter of that machine."""
        return replace(evaluation, device=self._target.device)


def _text(kernel: Kernel) -> KernelText:
    return KernelText(source=kernel.source, path=None if kernel.path is None else str(kernel.path)[:2000])


def _folder_name(problem: Problem) -> str:
    """The problem's name, which a folder's name may be; it is the user's own and may be anything."""
    return problem.name if len(problem.name) <= 255 and problem.name not in ("", ".", "..") else "problem"
