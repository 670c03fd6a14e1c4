"""A kernel as one Python file: code objects, a launcher through HIP's module API, and a main.

It needs NumPy and libamdhip64 alone. The code objects are what this machine's compiler made of the kernel.
"""

from __future__ import annotations

import ast
import base64
import textwrap
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from kernel_scientist.sandbox.compilation import (
    BufferArgument,
    CompileFailure,
    Compiler,
    CompileRequest,
    EntryPoint,
    ScalarArgument,
)
from kernel_scientist.sandbox.representations import is_integer
from kernel_scientist.sandbox.rocm.arguments import argument_layouts

from ..dtypes import DTYPES, is_float, itemsize, numpy_dtype
from ..errors import ExpressionError, PlanError
from ..expressions import Expression, Number
from ..kernel import Kernel, Launch, Scratch
from ..problem import Problem
from .portfolio import Variant, build_portfolio
from .provenance import Exported, Provenance, comment_lines
from .vectors import few_vectors, vectors_mark

__all__ = ["export_python"]

_LOADER = Path(__file__).parent / "parts" / "loader.txt"
_PER_LINE = 96
_IMPORTS = """from __future__ import annotations

import argparse
import base64
import ctypes
import os
import struct
import sys
import zlib
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Buffer = namedtuple("Buffer", "name dtype itemsize output")
Scratch = namedtuple("Scratch", "name elements itemsize pattern")
Launch = namedtuple("Launch", "build number grid block lds arguments")
"""
_HELPERS = """
def cdiv(a: Any, b: Any) -> Any:
    return -(-a // b)


def _bit(value: Any) -> int:
    return int(bool(value))


def _extents(what: str, *extents: Any) -> tuple[int, int, int]:
    if any(type(one) not in (int, bool) or one < 1 for one in extents):
        raise ValueError(f"the plan's {what} is {extents} for this shape")
    x, y, z = (*extents, 1, 1)[:3]
    return int(x), int(y), int(z)

"""


def export_python(kernel: Kernel, problem: Problem, provenance: Provenance, compiler: Compiler) -> Exported:
    """The file's text. Raises PlanError where the kernel cannot be exported or does not compile."""
    portfolio = build_portfolio(kernel, problem)
    vectors = few_vectors(problem)
    builds = [_build(kernel, problem, variant, compiler) for variant in portfolio.variants]
    head = [
        f"{problem.title}. Exported by kernel-scientist {provenance.version}: {provenance.source}.",
        *provenance.measured,
        "",
        "Run it to check the kernel against test vectors and to time it (--help lists options); or import it",
        "and call Launcher().launch(buffers, scalars, stream). It needs NumPy and ROCm's libamdhip64 alone.",
        f"{len(builds)} code object(s) for {compiler.arch}, compiled by {compiler.name}.",
        f"Test vectors in this file: {'; '.join(vectors.names) or 'none'}.",
        "The kernel's own text, launch plan first, is at the end of this file.",
    ]
    shapes = problem.shapes["mi300" if "mi300" in problem.shapes else "cpu"].benchmarks
    parts = [
        "#!/usr/bin/env python3\n" + "\n".join(comment_lines(head, "#")),
        _IMPORTS,
        _tables(problem, vectors_mark(problem), [tuple(one[n] for n in problem.domain) for one in shapes]),
        _HELPERS,
        _plan_functions(kernel, problem, portfolio.variants),
        _LOADER.read_text(encoding="utf-8"),
        f"\nVECTORS = (\n{_lines(zlib.compress(vectors.data, 9))})\n",
        f"BUILDS: list[dict[str, Any]] = [\n{''.join(builds)}]\n",
        f"SOURCE = {_literal(kernel.source)}\n",
        '\nif __name__ == "__main__":\n    sys.exit(main())\n',
    ]
    return Exported("\n".join(parts), len(builds), vectors.names, "Run it with: python3 FILE")


def _lines(data: bytes) -> str:
    text = base64.b64encode(data).decode()
    return (
        "".join(f'    "{text[at : at + _PER_LINE]}"\n' for at in range(0, len(text), _PER_LINE)) or '    ""\n'
    )


def _literal(source: str) -> str:
    """The text as a Python literal of one line per line."""
    return "(\n" + "".join(f"    {line!r}\n" for line in source.splitlines(keepends=True)) + ")"


def _tables(problem: Problem, mark: str, shapes: Sequence[tuple[int, ...]]) -> str:
    buffers = "".join(
        f"    Buffer({one.name!r}, {one.dtype!r}, {itemsize(one.dtype)}, {one.role == 'output'}),\n"
        for one in problem.buffers
    )
    return (
        f"TITLE = {problem.name!r}\n"
        f"DIMENSIONS = {tuple(problem.domain)!r}\n"
        f"FLOATS = {tuple(name for name in DTYPES if is_float(name))!r}\n"
        f"BUFFERS = [\n{buffers}]\n"
        f"TIMED_SHAPES: list[tuple[int, ...]] = {list(shapes)!r}\n"
        f"VECTORS_MARK = {mark!r}\n"
    )


class _Names(ast.NodeTransformer):
    """Names become look-ups in ``_s``, and logic gives 0 or 1 as it does in a plan."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Subscript(ast.Name("_s", ast.Load()), ast.Constant(node.id), ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return ast.Call(node.func, [self.visit(one) for one in node.args], [])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        inner = ast.BoolOp(node.op, [self.visit(one) for one in node.values])
        return ast.Call(ast.Name("_bit", ast.Load()), [inner], [])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        inner = ast.UnaryOp(node.op, self.visit(node.operand))
        return ast.Call(ast.Name("_bit", ast.Load()), [inner], []) if isinstance(node.op, ast.Not) else inner


def _python(expression: Expression) -> str:
    tree = ast.parse(expression.text.strip(), mode="eval").body
    return ast.unparse(ast.fix_missing_locations(_Names().visit(tree)))


def _plan_functions(kernel: Kernel, problem: Problem, variants: Sequence[Variant]) -> str:
    """``complete``, ``elements_of``, ``scratch_of`` and ``launches_of``, from the problem and the plan."""
    plan = kernel.plan
    shaped = [name for name, value in plan.constants.items() if isinstance(value, str)]
    order = list(plan.constants)
    keys = [tuple(one.values[order.index(name)] for name in shaped) for one in variants]
    checks = "".join(
        f"    if not {bounds.min} <= _s[{name!r}] <= {bounds.max} or _s[{name!r}] % {bounds.multiple_of}:\n"
        f'        raise ValueError(f"{name} = {{_s[{name!r}]}} is outside of the problem\'s domain")\n'
        for name, bounds in problem.domain.items()
    )
    scalars = "".join(
        f"    _s.setdefault({one.name!r}, {_python(one.value)})\n"
        for one in problem.scalars
        if one.name not in problem.domain
    )
    constants = "".join(
        f"    _s[{name!r}] = {_python(Expression.parse(value))}\n" for name, value in plan.constants.items()
    )
    return (
        "def complete(scalars: Mapping[str, Any]) -> dict[str, Any]:\n"
        '    """Dimensions, scalars and constants; ValueError for a shape outside of the domain."""\n'
        f"    _s = dict(scalars)\n{checks}{scalars}{constants}    return _s\n\n\n"
        "def elements_of(_s: Mapping[str, Any]) -> dict[str, int]:\n"
        '    """Elements of every buffer."""\n'
        f"    return {{{', '.join(_elements(one.name, one.shape) for one in problem.buffers)}}}\n\n\n"
        "def scratch_of(_s: Mapping[str, Any]) -> list[Scratch]:\n"
        '    """The scratch buffers, which lie in the workspace in this order."""\n'
        f"    return [{', '.join(map(_scratch_text, plan.scratch))}]\n\n\n"
        f"_KEYS = {{{', '.join(f'{key!r}: {number}' for number, key in enumerate(keys))}}}\n\n\n"
        "def launches_of(_s: dict[str, Any]) -> Iterator[Launch]:\n"
        '    """The launches for one shape, in order; ValueError where no build has its constants."""\n'
        f"    key = ({''.join(f'_s[{name!r}], ' for name in shaped)})\n"
        "    if key not in _KEYS:\n"
        '        raise ValueError(f"no build in this file has the constants {key}")\n'
        "    build = _KEYS[key]\n"
        + "".join(_launch_text(number, one, problem, kernel) for number, one in enumerate(plan.launches))
        + "\n\n"
    )


def _elements(name: str, shape: Sequence[Expression]) -> str:
    return f"{name!r}: {' * '.join(f'({_python(one)})' for one in shape)}"


def _scratch_text(one: Scratch) -> str:
    pattern = None if one.init is None else np.array(one.init).astype(numpy_dtype(one.dtype)).tobytes()
    return f"Scratch({one.name!r}, {_python(one.size)}, {itemsize(one.dtype)}, {pattern!r})"


def _launch_text(number: int, launch: Launch, problem: Problem, kernel: Kernel) -> str:
    buffers = {one.name for one in problem.buffers} | {one.name for one in kernel.plan.scratch}
    arguments = "".join(
        f"{one.name()!r}, " if one.name() in buffers else f"{_python(one)}, " for one in launch.args
    )
    grid, block = (", ".join(map(_python, one)) for one in (launch.grid, launch.block))
    lines = [
        f"for _s['step'] in range({_python(launch.repeat)}):",
        f"    yield Launch(build, {number}, _extents('grid', {grid}), _extents('block', {block}),",
        f"                 {_python(launch.lds)}, ({arguments}))",
    ]
    if launch.when is not None:
        lines = [f"if {_python(launch.when)}:", *(f"    {line}" for line in lines)]
    return textwrap.indent("\n".join(lines), "    ") + "\n"


def _build(kernel: Kernel, problem: Problem, variant: Variant, compiler: Compiler) -> str:
    numbers = sorted(variant.launches)
    entries = tuple(_entry(kernel, problem, variant, number) for number in numbers)
    distinct = tuple(dict.fromkeys(entries))
    code = compiler.compile(CompileRequest(kernel.source, distinct, variant.macros))
    if isinstance(code, CompileFailure):
        raise PlanError(f"does not compile for {code.arch}: {code.message}", path=kernel.path)
    layouts = argument_layouts(code.path, code.kernels)
    kernels: dict[int, tuple[str, list[tuple[int, int, str]]]] = {}
    for number, entry in zip(numbers, entries, strict=True):
        place = distinct.index(entry)
        kinds = [_kind(argument) for argument in entry.arguments]
        layout = [(offset, size, kind) for (offset, size), kind in zip(layouts[place], kinds, strict=True)]
        kernels[number] = code.kernels[place].symbol, layout
    data = _lines(zlib.compress(code.path.read_bytes(), 9)).replace("\n    ", "\n        ")
    return f'    {{"kernels": {kernels!r},\n     "code": (\n    {data}    )}},\n'


def _kind(argument: BufferArgument | ScalarArgument) -> str:
    if isinstance(argument, BufferArgument):
        return "p"
    return "i" if is_integer(argument.dtype) else "f"


def _entry(kernel: Kernel, problem: Problem, variant: Variant, number: int) -> EntryPoint:
    """The launch's kernel with the types that the plan passes, by their values for the variant's shape."""
    launch = kernel.plan.launches[number]
    names: dict[str, Any] = {**problem.scalar_values(variant.shape), "step": 0}
    names |= dict(zip(kernel.plan.constants, variant.values, strict=True))
    buffers = {one.name: BufferArgument(one.name, one.dtype, one.role == "output") for one in problem.buffers}
    buffers |= {one.name: BufferArgument(one.name, one.dtype, True) for one in kernel.plan.scratch}
    dtypes = {one.name: one.dtype for one in problem.scalars}
    try:
        arguments = tuple(_argument(one, names, buffers, dtypes) for one in launch.args)
        threads = prod(one.evaluate_integer(names) for one in launch.block)
    except ExpressionError as error:
        raise PlanError(str(error), line=launch.line, path=kernel.path) from None
    return EntryPoint(launch.kernel, arguments, threads)


def _argument(
    expression: Expression,
    names: Mapping[str, Number],
    buffers: Mapping[str, BufferArgument],
    dtypes: Mapping[str, str],
) -> BufferArgument | ScalarArgument:
    name = expression.name()
    if name is not None and name in buffers:
        return buffers[name]
    if name is not None and name in dtypes:
        return ScalarArgument(expression.text, dtypes[name])
    real = isinstance(expression.evaluate(names), float)
    return ScalarArgument(expression.text, "float32" if real else "int32")
