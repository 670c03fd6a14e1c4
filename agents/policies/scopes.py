"""Which variables of a C++ text are its own: declared in plain sight, and used within that scope only.

Errs on the side of no: a name that is used anywhere it is not known to be declared is not renamable.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Token", "renamable"]

_TYPES = frozenset(
    word
    for line in (
        "auto bool char double float int long short signed unsigned size_t",
        "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t",
        "float2 float3 float4 int2 int3 int4 uint2 uint3 uint4",
    )
    for word in line.split()
)
"""What declares for certain: "a * b;" may be a declaration or not, "int * b;" is one."""

# "int class = 1;" must not pass for "int width = 1;": it is no C++. The last line's are macros of compilers,
# or of some version of HIP.
_WORDS = frozenset(
    word
    for line in (
        "alignas alignof and and_eq asm bitand bitor break case catch char8_t char16_t char32_t class compl",
        "concept consteval constexpr constinit const_cast continue co_await co_return co_yield decltype",
        "default delete do dynamic_cast else enum explicit export extern false final for friend goto if",
        "inline mutable namespace new noexcept not not_eq nullptr operator or or_eq override private",
        "protected public register reinterpret_cast requires return sizeof static static_assert static_cast",
        "struct switch template this thread_local throw true try typedef typeid typename union using virtual",
        "void wchar_t while xor xor_eq",
        "unix linux i386 warpSize threadIdx blockIdx blockDim gridDim",
    )
    for word in line.split()
)
_BETWEEN = frozenset({"const", "volatile", "*", "&", "&&", "__restrict__", "__restrict"})
_AFTER = frozenset({"=", ";", ",", ")", "[", "{", ":", ">"})
_MEMBER = frozenset({".", "->", "::", ".*", "->*"})


@dataclass(frozen=True, slots=True)
class Token:
    """A token of C++; `kind` is ``directive``, ``string``, ``number``, ``name`` or ``sign``."""

    kind: str
    text: str


@dataclass(slots=True)
class _Scope:
    """Names declared so far. A statement's scope (a loop without braces) ends at its semicolon."""

    names: set[str] = field(default_factory=set[str])
    braces: bool = True


class _Walk:
    """One pass over the tokens with the scopes open at each place."""

    def __init__(self) -> None:
        self.scopes = [_Scope()]
        self.pending: set[str] = set()
        self.depth = 0
        self.template = False

    def sign(self, text: str) -> None:
        match text:
            case "(" | "[":
                self.depth += 1
            case ")" | "]":
                self.depth = max(0, self.depth - 1)
            case "{":
                # Parameters, and what a loop's head declares, belong to the block that follows.
                self.scopes.append(_Scope(self.pending))
                self.pending, self.template = set(), False
            case "}":
                self._close()
            case ";" if self.depth == 0:
                self.pending, self.template = set(), False
            case _:
                pass

    @property
    def at_file_scope(self) -> bool:
        return len(self.scopes) == 1 and self.depth == 0 and not self.template

    def declare(self, name: str) -> None:
        inside_head = self.depth > 0 or self.template
        (self.pending if inside_head else self.scopes[-1].names).add(name)

    def knows(self, name: str) -> bool:
        return name in self.pending or any(name in scope.names for scope in self.scopes)

    def _close(self) -> None:
        if len(self.scopes) > 1:
            self.scopes.pop()
        self.pending = set()


def renamable(tokens: list[Token]) -> tuple[set[str], set[str]]:
    """Names of variables that could all be given other names, the program staying the same.

    Those declared within some scope only, and those that are (also) declared outside of all.
    """
    walk = _Walk()
    declared: set[str] = set()
    at_file_scope: set[str] = set()
    barred: set[str] = set()
    for index, token in enumerate(tokens):
        if token.kind == "sign":
            walk.sign(token.text)
        elif token.kind == "name":
            if token.text == "template":
                walk.template = True
            if _is_declared_at(tokens, index):
                walk.declare(token.text)
                declared.add(token.text)
                if walk.at_file_scope:
                    at_file_scope.add(token.text)
            elif not walk.knows(token.text):
                barred.add(token.text)
            if index and tokens[index - 1].text in _MEMBER:
                barred.add(token.text)
    free = declared - barred - _TYPES - _BETWEEN - _WORDS
    return free - at_file_scope, free & at_file_scope


def _is_declared_at(tokens: list[Token], index: int) -> bool:
    """Whether the name at `index` is declared there: a plain type before it, an end of declarator after."""
    following = tokens[index + 1].text if index + 1 < len(tokens) else ""
    if following not in _AFTER:
        return False
    before = index - 1
    while before >= 0 and tokens[before].text in _BETWEEN:
        before -= 1
    return before >= 0 and tokens[before].kind == "name" and tokens[before].text in _TYPES
