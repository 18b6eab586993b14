"""Go's regular expressions (RE2 syntax, as in CRDs) for the engine that schemas run on.

Rust's `regex` is a sibling of RE2: linear in time, no look-around, nearly the same syntax. What
differs is rewritten here, token by token; what cannot be is refused with its reason, so that a
pattern is never quietly dropped. Source: https://pkg.go.dev/regexp/syntax.
"""

from __future__ import annotations

import re

# inclusive ranges of code points: the engine reads no class inside a class
_SETS: dict[str, tuple[str, ...]] = {
    "d": ("09",),
    "w": ("09", "AZ", "__", "az"),
    "s": ("\t\n", "\f\r", "  "),
    "alnum": ("09", "AZ", "az"),
    "alpha": ("AZ", "az"),
    "ascii": ("\0\x7f",),
    "blank": ("\t\t", "  "),
    "cntrl": ("\0\x1f", "\x7f\x7f"),
    "digit": ("09",),
    "graph": ("!~",),
    "lower": ("az",),
    "print": (" ~",),
    "punct": ("!/", ":@", "[`", "{~"),
    "space": ("\t\r", "  "),
    "upper": ("AZ",),
    "word": ("09", "AZ", "__", "az"),
    "xdigit": ("09", "AF", "af"),
}
_PLAIN = {"a": r"\x07", "f": r"\f", "t": r"\t", "n": r"\n", "r": r"\r", "v": r"\x0B"}
_ANCHORS = {"A": r"\A", "z": r"\z", "b": r"(?-u:\b)", "B": r"(?-u:\B)"}
_META = set("\\.+*?()|[]{}^$#&-~")
_ESCAPE = re.compile(
    r"\\(?:x\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|[pP]\{\^?\w+\}|[pP]\w|[0-7]{1,3}|.)", re.DOTALL
)
_POSIX = re.compile(r"\[:(\^?)(\w+):\]")
_GROUP = re.compile(r"\(\?(?:P?<\w+>|[imsU]*(?:-[imsU]+)?[:)])")
_FLAGS = re.compile(r"\(\?[imsU]*(?:-[imsU]+)?[:)]")
_ANY, _NO_LINE_FEED = r"[\x{0}-\x{10FFFF}]", r"[^\n]"  # the engine's own `.` knows more line ends
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_REPEAT_LIMIT = 1000


class Untranslatable(ValueError):
    """The pattern is no valid Go expression, or has no equivalent; the text says why."""


def translate(pattern: str) -> str:
    """`pattern` in the engine's syntax, matching the same texts; raises Untranslatable."""
    out: list[str] = []
    dots = [False]  # whether `.` matches a line feed, in each open group
    at = 0
    while at < len(pattern):
        rest = pattern[at:]
        if rest.startswith("\\Q"):
            text, size = _quoted(rest)
        elif rest[0] == "\\":
            token = _escape(rest)
            text, size = _escaped(token, inside=False), len(token)
        elif rest[0] == "[":
            text, size = _class(rest)
        elif rest[0] == ".":
            text, size = (_ANY if dots[-1] else _NO_LINE_FEED), 1
        else:
            text, size = _special(rest)
            _scope(text, dots)
        out.append(text)
        at += size
    return "".join(out)


def _quoted(rest: str) -> tuple[str, int]:
    """A literal up to its end mark or the end, and how much of `rest` it is."""
    text, end, _ = rest[2:].partition("\\E")
    return "".join(map(_literal, text)), 2 + len(text) + len(end)


def _scope(text: str, dots: list[bool]) -> None:
    """Follow the `s` flag through groups: `(?s)`, `(?s:`, `(?-s:`, `(`, `)`."""
    if text == ")" and len(dots) > 1:
        dots.pop()
    elif text.startswith("("):
        on, _, off = (text[2:-1] if _FLAGS.fullmatch(text) else "").partition("-")
        dot = (dots[-1] or "s" in on) and "s" not in off
        if text.endswith(")"):
            dots[-1] = dot
        else:
            dots.append(dot)


def _special(rest: str) -> tuple[str, int]:
    """A group's start, a repetition or one character, and how much of `rest` it is."""
    if rest.startswith("(?") and not (found := _GROUP.match(rest)):
        raise Untranslatable(f"Go has no group {rest[:4]!r}")
    if rest.startswith("(?") and found:
        return found[0], found.end()
    if rest[0] == "{":
        if not (repeat := _REPEAT.match(rest)):
            return "\\{", 1
        if any(int(number) > _REPEAT_LIMIT for number in repeat.groups("") if number):
            raise Untranslatable(f"Go repeats at most {_REPEAT_LIMIT} times")
        return repeat[0], repeat.end()
    return rest[0], 1


def _escape(rest: str) -> str:
    found = _ESCAPE.match(rest)
    if not found:
        raise Untranslatable("a backslash at the end")
    return found[0]


def _escaped(token: str, *, inside: bool) -> str:
    """One escape in the engine's syntax; `inside` a class, sets are written without brackets."""
    name = token[1]
    if name.lower() in {"d", "w", "s"}:
        chars = _ranges(name.lower(), negated=name.isupper())
        return chars if inside else f"[{chars}]"
    fixed = _PLAIN.get(name) or ("" if inside else _ANCHORS.get(name))
    if fixed or name in "pP":
        return fixed or token
    if name == "x":
        return rf"\x{{{token[2:].strip('{}')}}}"
    if name == "0" or (name in "1234567" and len(token) > 2):  # noqa: PLR2004 - \1 is no octal
        return rf"\x{{{int(token[1:], 8):X}}}"
    if name.isascii() and not name.isalnum():
        return _literal(name)
    raise Untranslatable(f"Go has no escape {token!r}")


def _ranges(name: str, *, negated: bool) -> str:
    """The inside of a class that holds the set `name`, or everything else."""
    pairs = [(ord(pair[0]), ord(pair[1])) for pair in _SETS[name]]
    if negated:
        starts = [0, *(high + 1 for _, high in pairs)]
        ends = [*(low - 1 for low, _ in pairs), 0x10FFFF]
        pairs = [(low, high) for low, high in zip(starts, ends, strict=True) if low <= high]
    return "".join(rf"\x{{{low:X}}}-\x{{{high:X}}}" for low, high in pairs)


def _literal(char: str) -> str:
    return f"\\{char}" if char in _META else char


def _class(rest: str) -> tuple[str, int]:
    """A character class at the start of `rest`, and how much of `rest` it is."""
    out, at = ["["], 1
    if rest.startswith("^", at):
        out.append("^")
        at += 1
    first = at
    while at < len(rest):
        char = rest[at]
        if char == "]" and at > first:
            return "".join([*out, "]"]), at + 1
        if posix := _POSIX.match(rest, at):
            if len(posix[2]) == 1 or posix[2] not in _SETS:
                raise Untranslatable(f"Go has no class {posix[0]!r}")
            out.append(_ranges(posix[2], negated=bool(posix[1])))
            at = posix.end()
        elif char == "\\":
            token = _escape(rest[at:])
            out.append(_escaped(token, inside=True))
            at += len(token)
        elif char == "-":
            out.append("-" if _is_range(rest, at, first) else r"\-")
            at += 1
        else:
            out.append(_literal(char))
            at += 1
    raise Untranslatable("a class without its end")


def _is_range(rest: str, at: int, first: int) -> bool:
    """Whether the `-` at `at` stands between two single characters."""
    if at == first or rest[at + 1 : at + 2] in {"]", ""}:
        return False
    before = rest[:at]
    return not re.search(r"(?:\\[dwsDWS]|:\])$", before) and not re.match(
        r"\\[dwsDWS]|\[:", rest[at + 1 :]
    )
