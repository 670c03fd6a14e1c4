"""A HIP program's syntax tree. The parser (tree-sitter) goes on after what it does not understand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernel_scientist.sandbox.errors import UnusableEnvironment

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = [
    "children",
    "descendants",
    "enclosing",
    "field",
    "line_of_node",
    "parse_program",
    "text_of",
    "try_text",
]

_MISSING = (
    "reading a HIP program needs the parser tree-sitter, which is not installed; "
    "run: pip install 'kernel-scientist[program]'"
)


def parse_program(source: bytes) -> Node:
    """The root of the tree; UnusableEnvironment where the parser is not installed."""
    try:
        import tree_sitter_cuda
        from tree_sitter import Language, Parser
    except ImportError:
        raise UnusableEnvironment(_MISSING) from None
    return Parser(Language(tree_sitter_cuda.language())).parse(source).root_node


def text_of(node: Node) -> str:
    """The node's text in the program."""
    return (node.text or b"").decode(errors="replace")


def try_text(node: Node | None) -> str:
    return "" if node is None else text_of(node)


def field(node: Node, name: str) -> Node | None:
    """The child in this role, if it has one."""
    return node.child_by_field_name(name)


def children(node: Node, *kinds: str) -> list[Node]:
    """The named children, comments left out; of these kinds only, where any is given."""
    return [one for one in node.named_children if one.type != "comment" and (not kinds or one.type in kinds)]


def descendants(node: Node, *kinds: str) -> Iterator[Node]:
    """The nodes of these kinds in and under `node`, in the order of the text."""
    pending = [node]
    while pending:
        one = pending.pop()
        if one.type in kinds:
            yield one
        pending.extend(reversed(one.children))


def enclosing(node: Node, *kinds: str) -> Node | None:
    """The nearest node of these kinds round `node`."""
    parent = node.parent
    while parent is not None and parent.type not in kinds:
        parent = parent.parent
    return parent


def line_of_node(node: Node) -> int:
    """The line it begins on, counted from 1."""
    return node.start_point[0] + 1
