"""The device side of a program: its kernels, its constants, and its text without host code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .syntax import children, descendants, field, line_of_node, text_of, try_text

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["KernelFunction", "Macro", "Parameter", "device_text", "find_kernels", "find_macros"]

_DEVICE = re.compile(r"__(?:global|device|constant|shared|managed)__")
_WORD = re.compile(r"[A-Za-z_]\w*")
_HIP_HEADER = re.compile(r'[<"]((?:hip|hipcub)/[\w/]+\.h(?:pp)?)[>"]')
_FREESTANDING = re.compile(
    r"<(?:cfloat|climits|cstddef|cstdint|type_traits|(?:float|limits|stdbool|stddef|stdint)\.h)>"
)
_TYPES = frozenset(
    {"struct_specifier", "enum_specifier", "union_specifier", "type_definition", "alias_declaration"}
)
_CONDITIONALS = frozenset({"preproc_ifdef", "preproc_if", "preproc_else", "preproc_elif"})
_DECLARING = (*_TYPES, "preproc_def", "preproc_function_def", "declaration", "init_declarator")
# What may hold device code and host code together.
_CONTAINERS = frozenset({"namespace_definition", "linkage_specification", "declaration_list"})
_DROPPED = frozenset({"using_declaration", "preproc_call", "expression_statement", "comment"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel's parameter: `type` is the pointed-to type of a pointer, without const."""

    name: str
    type: str
    pointer: bool
    const: bool


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """A ``__global__`` function."""

    name: str
    parameters: tuple[Parameter, ...]
    template: bool
    line: int


@dataclass(frozen=True, slots=True)
class Macro:
    """A ``#define``, or a constant of the file; `parameters` is None for one that is no function."""

    name: str
    parameters: tuple[str, ...] | None
    body: str
    node: Node


def find_kernels(root: Node) -> dict[str, KernelFunction]:
    """The kernels by name; of several of one name the first."""
    found: dict[str, KernelFunction] = {}
    for function in descendants(root, "function_definition"):
        declarator = next(descendants(function, "function_declarator"), None)
        body = field(function, "body")
        if declarator is None or "__global__" not in _head(function, body):
            continue
        name = try_text(field(declarator, "declarator")).split("::")[-1]
        listed = field(declarator, "parameters")
        parameters = tuple(_parameter(one) for one in _parameters(listed)) if listed is not None else ()
        template = function.parent is not None and function.parent.type == "template_declaration"
        found.setdefault(name, KernelFunction(name, parameters, template, line_of_node(function)))
    return found


def _parameters(listed: Node) -> list[Node]:
    return children(listed, "parameter_declaration", "optional_parameter_declaration")


def _head(function: Node, body: Node | None) -> str:
    text = text_of(function)
    return text if body is None else text[: max(0, len(text) - len(text_of(body)))]


def _parameter(node: Node) -> Parameter:
    names = [text_of(one) for one in descendants(node, "identifier")]
    pointer = next(descendants(node, "pointer_declarator"), None) is not None
    array = next(descendants(node, "array_declarator"), None) is not None
    kind = try_text(field(node, "type"))
    before = text_of(node).split(kind)[0] + text_of(node).split("*")[0] if kind else ""
    return Parameter(names[0] if names else "", kind, pointer or array, bool(re.search(r"\bconst\b", before)))


def find_macros(root: Node) -> dict[str, Macro]:
    """Macros, and constants of the file that are one number or expression."""
    found: dict[str, Macro] = {}
    for node in descendants(root, "preproc_def", "preproc_function_def"):
        parameters = field(node, "parameters")
        names = tuple(text_of(one) for one in children(parameters)) if parameters is not None else None
        body = try_text(field(node, "value")).split("//")[0].strip()
        found[try_text(field(node, "name"))] = Macro(try_text(field(node, "name")), names, body, node)
    for node in _top(root):
        head = text_of(node).split("=")[0]
        if node.type == "declaration" and re.search(r"\b(?:const|constexpr)\b", head) and "*" not in head:
            inits = children(node, "init_declarator")
            if len(inits) == 1 and not _DEVICE.search(head):
                name, value = field(inits[0], "declarator"), field(inits[0], "value")
                if name is not None and value is not None and name.type == "identifier":
                    found[text_of(name)] = Macro(text_of(name), None, text_of(value), node)
    return found


def _top(root: Node) -> Iterator[Node]:
    for node in root.named_children:
        if node.type in _CONTAINERS:
            yield from _top(node)
        else:
            yield node


def device_text(root: Node, left_out: Sequence[Node]) -> str:
    """The program's text without its host code, and without these nodes."""
    gone = {(node.start_byte, node.end_byte) for node in left_out}
    parts = ["#include <hip/hip_runtime.h>"]
    for include in descendants(root, "preproc_include"):
        path = try_text(field(include, "path"))
        hip = _HIP_HEADER.search(path)
        if hip and hip[1] != "hip/hip_runtime.h":
            parts.append(f"#include <{hip[1]}>")
        elif _FREESTANDING.fullmatch(path):
            parts.append(f"#include {path}")
    candidates = [node for node in root.named_children if _is_device(node, gone)]
    texts = [_without_host(node, gone) for node in candidates]
    shown = _used(candidates, texts)
    return "\n".join(dict.fromkeys(parts)) + "\n\n" + "\n\n".join(shown).strip() + "\n"


def _used(candidates: Sequence[Node], texts: Sequence[str]) -> list[str]:
    """The texts of device code, and of the types, constants and macros that they lead to."""
    declared = [_declared_names(node) for node in candidates]
    kept = [names is None for names in declared]
    words: set[str] = set()
    while True:
        for text, keep in zip(texts, kept, strict=True):
            if keep:
                words |= set(_WORD.findall(text))
        more = [keep or bool(names and names & words) for keep, names in zip(kept, declared, strict=True)]
        if more == kept:
            return [text.rstrip() for text, keep in zip(texts, kept, strict=True) if keep]
        kept = more


def _declared_names(node: Node) -> set[str] | None:
    """What the node is there to declare; None where it is device code itself."""
    if node.type in ("function_definition", "template_declaration") or _DEVICE.search(text_of(node)):
        return None
    names: set[str] = set()
    for one in descendants(node, *_DECLARING):
        for role in ("name", "declarator"):
            declarator = field(one, role)
            if declarator is not None:
                found = [*descendants(declarator, "identifier", "type_identifier")]
                names |= {text_of(found[0])} if found else set()
    return names


def _is_macro(node: Node) -> bool:
    return node.type in ("preproc_def", "preproc_function_def")


def _is_device(node: Node, gone: set[tuple[int, int]]) -> bool:
    if (node.start_byte, node.end_byte) in gone or node.type in _DROPPED or node.type == "preproc_include":
        return False
    text = text_of(node)
    if _DEVICE.search(text):
        return True
    if node.type in ("function_definition", "template_declaration"):
        return bool(re.search(r"\bconstexpr\b", text.split("{")[0]))
    if node.type == "declaration":
        return bool(re.match(r"(?:static\s+|inline\s+)*(?:const|constexpr)\b", text)) and "std::" not in text
    if node.type in _CONDITIONALS:
        return any(_is_device(child, gone) for child in node.named_children)
    return _is_macro(node) or (node.type in _TYPES and "std::" not in text)


def _without_host(node: Node, gone: set[tuple[int, int]]) -> str:
    """The text; of what may hold both kinds of code, and of conditionals, the device code."""
    if node.type not in _CONTAINERS | _CONDITIONALS:
        # A type's closing semicolon is a sibling.
        closing = ";" if node.type in ("struct_specifier", "enum_specifier", "union_specifier") else ""
        return text_of(node) + closing
    text = text_of(node)
    pieces: list[str] = []
    done = node.start_byte
    raw = node.text or b""
    for child in node.named_children:
        inner = child.type in _CONTAINERS or child.type in ("preproc_else", "preproc_elif")
        if child.type in (
            "identifier",
            "namespace_identifier",
            "string_literal",
            "comment",
            "preproc_include",
        ):
            continue
        if inner or _is_device(child, gone):
            replacement = _without_host(child, gone) if inner else text_of(child)
        else:
            replacement = ""
        pieces += [
            raw[done - node.start_byte : child.start_byte - node.start_byte].decode(errors="replace"),
            replacement,
        ]
        done = child.end_byte
    return "".join(pieces) + raw[done - node.start_byte :].decode(errors="replace") if pieces else text
