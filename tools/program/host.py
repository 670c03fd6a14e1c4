"""The host side of a program: what it launches, allocates and copies, and what its names stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from .arithmetic import Term, Translator, Unknown, parse_expression, safe_name
from .device import KernelFunction, Macro, find_kernels, find_macros
from .syntax import children, descendants, enclosing, line_of_node, parse_program, text_of, try_text
from .syntax import field as part

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["LaunchSite", "Program", "Scope", "Variable"]

_LAUNCHERS = frozenset({"hipLaunchKernelGGL", "hipLaunchKernel", "hipExtLaunchKernelGGL"})
_INTEGER = re.compile(r"\b(?:int|unsigned|long|short|size_t|u?int\d+_t|uint|auto|dim3)\b")
_REAL = re.compile(r"\b(?:float|double|half|__half)\b")
_DEEPEST = 6
_MOST_FOLLOWED = 20_000


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the program by the place of its declaration; `function` is None for a global."""

    name: str
    function: str | None


@dataclass(frozen=True, slots=True)
class Scope:
    """A host function, and what its parameters are where it is called from."""

    function: Node | None
    arguments: Mapping[str, tuple[Node, Scope]] = field(default_factory=dict["str", "tuple[Node, Scope]"])


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """One launch as written: its configuration and arguments, and the loops round it, the nearest first."""

    kernel: str
    written: str
    grid: Node | None
    block: Node | None
    lds: Node | None
    arguments: tuple[Node, ...]
    loops: tuple[Node, ...]
    scope: Scope
    line: int


class Program:
    """A parsed program. `roots` collects the names that values go back to, with what they are set to."""

    def __init__(self, source: bytes) -> None:
        self.root = parse_program(source)
        self.kernels: dict[str, KernelFunction] = find_kernels(self.root)
        self.macros: dict[str, Macro] = find_macros(self.root)
        self.roots: dict[str, Term | None] = {}
        self._declarations: dict[tuple[str, int], tuple[Node, Node | None] | None] = {}
        self._followed = 0

    @cached_property
    def functions(self) -> dict[str, Node]:
        """The host functions by name."""
        found: dict[str, Node] = {}
        for node in descendants(self.root, "function_definition"):
            declarator = next(descendants(node, "function_declarator"), None)
            head = text_of(node).split("{")[0]
            if (
                declarator is not None
                and "__global__" not in head
                and "__device__" not in head.replace("__host__", "")
            ):
                found.setdefault(try_text(part(declarator, "declarator")).split("::")[-1], node)
        return found

    @cached_property
    def helpers(self) -> dict[str, tuple[tuple[str, ...], Node]]:
        """Functions that are one return statement: parameters and what is returned."""
        found: dict[str, tuple[tuple[str, ...], Node]] = {}
        for node in descendants(self.root, "function_definition"):
            body, declarator = part(node, "body"), next(descendants(node, "function_declarator"), None)
            statements = children(body) if body is not None else []
            if declarator is None or len(statements) != 1 or statements[0].type != "return_statement":
                continue
            value = children(statements[0])
            if len(value) == 1:
                found[try_text(part(declarator, "declarator"))] = (tuple(_parameters(node)), value[0])
        return found

    def launches(self) -> list[LaunchSite]:
        """Every launch in the order of the program, functions followed from where they are called."""
        start = [self.functions["main"]] if "main" in self.functions else self._uncalled()
        found = [site for function in start for site in self._in_function(function, Scope(function), 0)]
        return found or [
            site
            for function in self.functions.values()
            for site in self._in_function(function, Scope(function), _DEEPEST)
        ]

    def _uncalled(self) -> list[Node]:
        called = {_called(node) for node in descendants(self.root, "call_expression")}
        return [node for name, node in self.functions.items() if name not in called]

    def _in_function(self, function: Node, scope: Scope, depth: int) -> Iterator[LaunchSite]:
        for node in descendants(function, "call_expression"):
            site = self._site(node, scope)
            name = _called(node)
            if site is not None:
                yield site
            elif name in self.functions and depth < _DEEPEST:
                listed = part(node, "arguments")
                values = children(listed) if listed is not None else []
                names = _parameters(self.functions[name])
                bound = {one: (value, scope) for one, value in zip(names, values, strict=False)}
                yield from self._in_function(
                    self.functions[name], Scope(self.functions[name], bound), depth + 1
                )

    def _site(self, node: Node, scope: Scope) -> LaunchSite | None:
        syntax = children(node, "kernel_call_syntax")
        listed = part(node, "arguments")
        arguments = children(listed) if listed is not None else []
        if syntax:
            written = try_text(part(node, "function"))
            configuration = children(syntax[0])
        elif _called(node) in _LAUNCHERS and arguments:
            written = re.sub(r"^HIP_KERNEL_NAME\s*\((.*)\)$", r"\1", text_of(arguments[0]), flags=re.DOTALL)
            configuration, arguments = arguments[1:5], arguments[5:]
        else:
            return None
        written = " ".join(written.strip("()& ").split())
        grid, block, lds = (*configuration, None, None, None)[:3]
        loops: list[Node] = []
        loop = enclosing(node, "for_statement", "while_statement", "do_statement")
        while loop is not None:
            loops.append(loop)
            loop = enclosing(loop, "for_statement", "while_statement", "do_statement")
        name = written.split("<")[0].split("::")[-1]
        return LaunchSite(
            name, written, grid, block, lds, tuple(arguments), tuple(loops), scope, line_of_node(node)
        )

    def calls(self, *names: str) -> Iterator[tuple[Node, list[Node], Scope]]:
        """Calls of these functions with their arguments, in the scope of where they stand."""
        for node in descendants(self.root, "call_expression"):
            if _called(node) in names:
                listed = part(node, "arguments")
                yield (
                    node,
                    children(listed) if listed is not None else [],
                    Scope(enclosing(node, "function_definition")),
                )

    def variable(self, node: Node, scope: Scope) -> Variable:
        """The variable that a pointer argument is, followed to where it is declared; Unknown for others."""
        while node.type in ("parenthesized_expression", "cast_expression", "pointer_expression"):
            inside = part(node, "value") or part(node, "argument") or next(iter(children(node)), None)
            if inside is None:
                break
            node = inside
        if node.type == "call_expression" and _called(node) in ("reinterpret_cast", "static_cast"):
            listed = part(node, "arguments")
            if listed is not None and len(children(listed)) == 1:
                return self.variable(children(listed)[0], scope)
        if node.type != "identifier":
            raise Unknown(f"'{_short(node)}' is no variable")
        name = text_of(node)
        if name in scope.arguments:
            value, outer = scope.arguments[name]
            return self.variable(value, outer)
        own = scope.function is not None and (
            self._declaration(name, scope.function) is not None or name in _parameters(scope.function)
        )
        return Variable(name, _name_of(scope.function) if own and scope.function is not None else None)

    def element_type(self, variable: Variable) -> str | None:
        """The C++ type that a pointer variable points to, where it is declared."""
        function = self.functions.get(variable.function or "")
        declared = self._declaration(variable.name, function if function is not None else self.root)
        if declared is not None:
            return try_text(part(declared[0], "type")) or None
        if function is not None:
            for node in descendants(function, "parameter_declaration"):
                if any(text_of(one) == variable.name for one in descendants(node, "identifier")):
                    return try_text(part(node, "type")) or None
        return None

    def _declaration(self, name: str, within: Node) -> tuple[Node, Node | None] | None:
        """The declaration of a variable, and its first value."""
        key = (name, within.id)
        if key not in self._declarations:
            self._declarations[key] = self._find_declaration(name, within)
        return self._declarations[key]

    def _find_declaration(self, name: str, within: Node) -> tuple[Node, Node | None] | None:
        for node in descendants(within, "declaration"):
            if within == self.root and enclosing(node, "function_definition") is not None:
                continue
            for declarator in node.children_by_field_name("declarator"):
                inner = declarator
                if inner.type == "init_declarator":
                    inner = part(inner, "declarator") or inner
                names = [text_of(one) for one in descendants(inner, "identifier")]
                if names[:1] == [name]:
                    value = part(declarator, "value") if declarator.type == "init_declarator" else None
                    if declarator.type == "function_declarator":
                        # `dim3 block(BLOCK);` reads as the declaration of a function.
                        value = part(declarator, "parameters")
                    return node, value
        return None

    def translator(self, scope: Scope, known: Mapping[str, Term] | None = None) -> Translator:
        """Translates expressions that stand in `scope`, where these names are `known` already."""
        given = known or {}

        def resolve(name: str) -> Term:
            return given[name] if name in given else self._resolve(name, scope, 0)

        return Translator(resolve, self.macros, self.helpers)

    def _resolve(self, name: str, scope: Scope, depth: int) -> Term:
        # Names that each stand for two others would be followed for ever.
        self._followed += 1
        if self._followed > _MOST_FOLLOWED:
            raise Unknown("too many names stand for one another")
        if depth > 20:
            raise Unknown(f"'{name}' goes round in a circle")
        if name in scope.arguments:
            value, outer = scope.arguments[name]
            return self.translator(outer).term(value)
        if scope.function is not None:
            declared = self._declaration(name, scope.function)
            if declared is not None:
                return self._declared(name, declared, scope, depth)
            if name in _parameters(scope.function):
                return self._root(name, None)
        macro = self.macros.get(name)
        if macro is not None and macro.parameters is None:
            return self._macro(macro, depth)
        declared = self._declaration(name, self.root)
        if declared is None:
            raise Unknown(f"'{name}' is not declared in this file")
        return self._declared(name, declared, Scope(None), depth)

    def _macro(self, macro: Macro, depth: int) -> Term:
        body = parse_expression(macro.body)
        if body is None:
            raise Unknown(f"'{macro.name}' is no number")
        inner = Translator(
            lambda other: self._resolve(other, Scope(None), depth + 1), self.macros, self.helpers
        )
        value = inner.term(body)
        return self._root(macro.name, value) if _is_number(value.text) else value

    def _declared(self, name: str, declared: tuple[Node, Node | None], scope: Scope, depth: int) -> Term:
        node, value = declared
        kind = try_text(part(node, "type"))
        if not _INTEGER.search(kind) and not _REAL.search(kind):
            raise Unknown(
                f"'{name}' is a {kind}, and a plan passes numbers: give the kernel its fields one by one"
            )
        if value is None or value.type in ("parameter_list", "argument_list"):
            value = self._assigned(name, scope) or value
        if value is None or value.type in ("parameter_list", "argument_list"):
            return self._root(name, None, real=bool(_REAL.search(kind)))
        inner = Translator(lambda other: self._resolve(other, scope, depth + 1), self.macros, self.helpers)
        try:
            term = inner.term(value)
        except Unknown:
            return self._root(name, _default_in(value), real=bool(_REAL.search(kind)))
        if _is_number(term.text):
            return self._root(name, term, real=bool(_REAL.search(kind)))
        return term

    def _assigned(self, name: str, scope: Scope) -> Node | None:
        """The value of the first assignment."""
        for node in descendants(scope.function or self.root, "assignment_expression"):
            if try_text(part(node, "left")) == name:
                return part(node, "right")
        return None

    def _root(self, name: str, value: Term | None, *, real: bool = False) -> Term:
        """A name that the program gives a value: a dimension, a constant or a scalar of the proposal."""
        if value is not None and not value.real and not real and int(float(value.text)) < 1:
            return value
        name = safe_name(name)
        if name not in self.roots or (self.roots[name] is None and value is not None):
            number = Term(repr(float(value.text)), real=True) if value is not None and real else value
            self.roots[name] = number if value is not None else (Term("", real=True) if real else None)
        return Term(name, real=real)

    def extents(self, node: Node | None, scope: Scope) -> list[tuple[Node, Scope]]:
        """The one to three expressions of a grid or a block."""
        if node is None:
            return []
        if node.type == "identifier" and text_of(node) in scope.arguments:
            given, outer = scope.arguments[text_of(node)]
            return self.extents(given, outer)
        if node.type == "identifier" and scope.function is not None:
            declared = self._declaration(text_of(node), scope.function)
            if declared is not None and "dim3" in text_of(declared[0]):
                value = declared[1] or self._assigned(text_of(node), scope)
                return self.extents(value, scope) if value is not None else []
        if node.type == "call_expression" and _called(node) == "dim3":
            listed = part(node, "arguments")
            return [(one, scope) for one in children(listed)] if listed is not None else []
        if node.type == "compound_literal_expression":
            listed = part(node, "value")
            return self.extents(listed, scope) if listed is not None else []
        if node.type in ("argument_list", "initializer_list"):
            return [(one, scope) for one in children(node)]
        if node.type == "parameter_list":
            return [(_as_expression(one), scope) for one in children(node)]
        return [(node, scope)]


def _as_expression(node: Node) -> Node:
    """What stands in the place of a parameter, read as the expression that it is."""
    return parse_expression(text_of(node)) or node


def _called(node: Node) -> str:
    function = part(node, "function")
    return try_text(function).split("<")[0].split("::")[-1]


def _name_of(function: Node) -> str:
    declarator = next(descendants(function, "function_declarator"), None)
    return try_text(part(declarator, "declarator")).split("::")[-1] if declarator is not None else ""


def _parameters(function: Node) -> list[str]:
    declarator = next(descendants(function, "function_declarator"), None)
    listed = part(declarator, "parameters") if declarator is not None else None
    if listed is None:
        return []
    names = [
        [text_of(one) for one in descendants(node, "identifier")]
        for node in children(listed, "parameter_declaration", "optional_parameter_declaration")
    ]
    return [one[0] if one else "" for one in names]


def _default_in(node: Node) -> Term | None:
    """The number that a value falls back to: of ``argc > 1 ? atoi(argv[1]) : 1024`` it is 1024."""
    for conditional in descendants(node, "conditional_expression"):
        for name in ("alternative", "consequence"):
            branch = part(conditional, name)
            if branch is not None and branch.type == "number_literal":
                return Translator(lambda name: Term(name), {}, {}).term(branch)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _short(node: Node) -> str:
    words = " ".join(text_of(node).split())
    return words if len(words) <= 40 else f"{words[:37]}..."
