"""The far end: answers requests in frames, with this machine's own target, until the other side has gone."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, BinaryIO, assert_never, final

import numpy as np
from pydantic import ValidationError

from kernel_scientist.sandbox.errors import InternalError, KernelScientistError
from kernel_scientist.sandbox.inspection import inspect_machine
from kernel_scientist.sandbox.remote.bootstrap import (
    encode_frame,
    forget_unused,
    holds,
    read_frame,
    remote_home,
    take_files,
)

from ..errors import PlanError
from ..evaluation import Evaluation
from ..kernel import Kernel
from ..problem import Problem
from ..targets import Target, resolve_target
from ..targets.base import Assessor
from .messages import (
    CompareRequest,
    EvaluateRequest,
    InspectRequest,
    KernelText,
    OpenRequest,
    PrepareRequest,
    RefuseRequest,
    Request,
    TargetRequest,
    fault_of,
    parse_request,
)

__all__ = ["HEARTBEAT_S", "serve"]

HEARTBEAT_S = 5.0
"""How often the far end says that it is at work."""

_FAREWELL_S = 20.0

Reply = dict[str, Any]


def serve(source: BinaryIO, sink: BinaryIO, folder: str) -> None:
    """Answer until `source` ends. `folder` is where this code must have been loaded from."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not Path(__file__).is_relative_to(folder):
        fault = fault_of(InternalError(f"{__file__} was loaded instead of what was put into {folder}."))
        sink.write(encode_frame({"error": fault.model_dump()}))
        sink.flush()
        return
    try:
        _Server(source, sink).run()
    except KeyboardInterrupt:
        sys.exit(1)  # the client has gone; workers and compilers ended on the way here


@final
class _Server:
    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._writing = threading.Lock()
        self._requests: queue.Queue[tuple[Request, bytes] | None] = queue.Queue()
        self._busy = threading.Event()
        self._target: Target | None = None
        self._assessors: dict[int, tuple[Assessor, set[str]]] = {}
        # The problems' folders, and what the client calls them.
        self._folders: dict[str, str] = {}

    def run(self) -> None:
        for work in (self._listen, self._beat):
            threading.Thread(target=work, daemon=True).start()
        self._send({"ready": True})
        while (item := self._requests.get()) is not None:
            self._busy.set()
            try:
                reply = self._answer(*item)
            finally:
                self._busy.clear()
            self._send(reply)

    def _send(self, message: Reply) -> None:
        data = encode_frame(message)
        with self._writing:
            self._sink.write(data)
            self._sink.flush()

    def _beat(self) -> None:
        while True:
            self._busy.wait()
            threading.Event().wait(HEARTBEAT_S)
            if self._busy.is_set():
                try:
                    self._send({"working": True})
                except OSError:
                    return  # the listener meets the end as well

    def _listen(self) -> None:
        """Read requests; what may run beside another is answered here. At the end stop what is at work."""
        try:
            while (frame := read_frame(self._source)) is not None:
                request = parse_request(frame[0])
                if isinstance(request, PrepareRequest):
                    self._prepare(request)
                else:
                    self._requests.put((request, frame[1]))
        except (ValidationError, ValueError) as error:
            print(f"not a request: {error}", file=sys.stderr)
        finally:
            self._requests.put(None)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            # A reference that catches everything does not keep an unwatched machine busy.
            threading.Event().wait(_FAREWELL_S)
            os._exit(1)

    def _prepare(self, request: PrepareRequest) -> None:
        known = self._assessors.get(request.assessor)
        if known is not None:
            try:
                known[0].prepare(_kernel(request.kernel))
            except KernelScientistError as error:
                # The evaluation meets it again, and has somebody to tell.
                print(f"not prepared: {error}", file=sys.stderr)

    def _answer(self, request: Request, blob: bytes) -> Reply:
        try:
            return self._dispatch(request, blob)
        except PlanError as error:
            return {"error": fault_of(error.as_usage_error(), self._folders).model_dump()}
        except KernelScientistError as error:
            return {"error": fault_of(error, self._folders).model_dump()}
        except Exception as error:
            traceback.print_exc()
            return {"error": fault_of(InternalError(_described(error))).model_dump()}

    def _dispatch(self, request: Request, blob: bytes) -> Reply:
        match request:
            case InspectRequest():
                return {"findings": [one.to_dict() for one in inspect_machine()]}
            case TargetRequest():
                self._target = resolve_target(request.name, allow_no_sandbox=request.allow_no_sandbox)
                one = self._target
                facts = (one.name, one.target_class, one.device, one.sandbox)
                return dict(zip(("name", "target_class", "device", "sandbox"), facts, strict=True))
            case OpenRequest():
                return {"opened": self._open(request, blob)}
            case RefuseRequest():
                assessor, _ = self._assessors[request.assessor]
                refused = assessor.refuse(_kernel(request.kernel), _kernel(request.baseline), request.tier)
                return {"evaluation": None if refused is None else refused.to_dict()}
            case EvaluateRequest():
                return {"evaluation": self._evaluate(request).to_dict()}
            case CompareRequest():
                assessor, _ = self._assessors[request.assessor]
                return {"comparison": assessor.compare(_kernel(request.a), _kernel(request.b)).to_dict()}
            case PrepareRequest():
                raise InternalError("A request to prepare is answered where it is read.")
            case _:
                assert_never(request)

    def _open(self, request: OpenRequest, blob: bytes) -> bool:
        folder = remote_home() / "problems" / request.digest / request.name
        if blob:
            forget_unused(folder.parent.parent)
            take_files(blob, request.digest, folder)
        elif not holds(folder, request.digest):
            return False
        os.utime(folder.parent)
        self._folders[str(folder)] = request.shown
        if self._target is None:
            raise InternalError("A problem was opened before a target.")
        seeds = np.random.SeedSequence(
            request.entropy, spawn_key=tuple(request.spawn_key), n_children_spawned=request.spawned
        )
        assessor = self._target.assessor(Problem.load(folder), request.settings, seeds)
        self._assessors[request.assessor] = (assessor, set())
        return True

    def _evaluate(self, request: EvaluateRequest) -> Evaluation:
        assessor, measured = self._assessors[request.assessor]
        kernel = _kernel(request.kernel)
        baseline = None if request.baseline is None else _kernel(request.baseline)
        if baseline is not None and baseline.key not in measured:
            # After a reconnection: a candidate's time limits are relative to the baseline's times.
            assessor.evaluate(baseline, None, "screen")
            measured.add(baseline.key)
        evaluation = assessor.evaluate(kernel, baseline, request.tier)
        if baseline is None:
            measured.add(kernel.key)
        return evaluation


def _kernel(text: KernelText) -> Kernel:
    return Kernel.parse(text.source, path=None if text.path is None else Path(text.path))


def _described(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}: {error}"
