"""Faults to plant in forms of output, in ignores, in the project file and in tracing."""

from __future__ import annotations

TESTS = [
    "tests/unit/test_output_forms.py",
    "tests/unit/test_ignores.py",
    "tests/unit/test_rules.py",
    "tests/unit/test_trace.py",
    "tests/chain/test_reports.py",
]

FORMS = "ocipack/cli/formats/"
IGNORES = "ocipack/validate/ignores.py"
PROJECT = "ocipack/project/ignore.py"
STRICT = "ocipack/k8s/yaml/strict.py"
TRACE = "ocipack/validate/trace/"

FAULTS: list[tuple[str, str, str]] = [
    # hostile text
    (FORMS + "github.py", '.replace("\\n", "%0A")', ""),
    (FORMS + "github.py", '.replace("%", "%25")', ""),
    (FORMS + "github.py", '.replace(":", "%3A")', ""),
    (FORMS + "github.py", '.replace(",", "%2C")', ""),
    (FORMS + "junit.py", "return escape(_legal(text))", "return _legal(text)"),
    (FORMS + "junit.py", "_ILLEGAL.sub(", "(lambda _, text: text)("),
    (FORMS + "markdown.py", r"[^\w ,/=-]|_|", r"[|<>&]|"),
    (FORMS + "markdown.py", 'shown = " ".join(plain(text).split())', "shown = plain(text)"),
    (FORMS + "markdown.py", "if len(shown) > CELL:", "if False:"),
    (FORMS + "markdown.py", "if room < 0:", "if False:"),
    (FORMS + "json_document.py", "_HALVES.sub(", "(lambda _, text: text)("),
    (FORMS + "sarif.py", 'quote(path or ".", errors="replace")', 'path or "."'),
    (FORMS + "sarif.py", "if finding.ignored is not None:", "if False:"),
    (FORMS + "sarif.py", "return error.exit_code != 1", "return False"),
    # what may be ignored, and for how long
    (IGNORES, "if rule is None or not rule.ignorable:", "if rule is None:"),
    (IGNORES, "if today <= ignore.until and", "if today < ignore.until and"),
    (IGNORES, "if today > ignore.until:", "if today >= ignore.until:"),
    (IGNORES, "if today > ignore.until:", "if False:"),
    (IGNORES, "elif whole and ignore.place not in used:", "elif ignore.place not in used:"),
    (IGNORES, "elif whole and ignore.place not in used:", "elif False:"),
    (IGNORES, "comment.ignore.rule == finding.rule and", ""),
    (IGNORES, "ignore.rule == finding.rule and ignore.covers", "ignore.covers"),
    (IGNORES, "finding.file == self.ignore.file and", ""),
    (IGNORES, "any(a <= at < b for a, b in inside)", "False"),
    (IGNORES, "_next(lines, number) if alone else number", "number"),
    (PROJECT, "if not RULES[rule].ignorable:", "if False:"),
    (PROJECT, "fits(self.path, file) and fits(self.object, subject)", "fits(self.path, file)"),
    (PROJECT, "fits(self.path, file) and fits(self.object, subject)", "fits(self.object, subject)"),
    (PROJECT, 'if "path" not in texts and "object" not in texts:', "if False:"),
    (STRICT, "if pair.key not in known:", "if False:"),
    (STRICT, "if not node.is_text:", "if False:"),
    (STRICT, "if len(data) > self.limit:", "if False:"),
    (STRICT, "if _DATE.fullmatch(text):", "if True:"),
    (STRICT, "if self.text(node, name) != text:", "if False:"),
    ("ocipack/cli/packing.py", '[f"/{ignore.PROJECT_FILE}", *how.ignored]', "how.ignored"),
    ("ocipack/cli/checking.py", 'whole=not was_given("roots")', "whole=True"),
    # a wrong line is worse than none
    (TRACE + "spots.py", "if type(one) is not type(other):", "if False:"),
    (TRACE + "spots.py", "if len(here) == 1 and len(there) < 2:", "if there:"),
    (
        TRACE + "spots.py",
        "return equal[0] if once and len(equal) == 1 else None",
        "return int(token)",
    ),
    (TRACE + "spots.py", "    if origin is not ABSENT:\n        return None\n", ""),
    (TRACE + "__init__.py", "if len(sources) != 1:", "if not sources:"),
    (TRACE + "__init__.py", "if opaque and tokens not in IDENTITY:", "if False:"),
    (TRACE + "__init__.py", "if len(spots) != 1 or UNKNOWN in spots:", "if len(spots) != 1:"),
    (TRACE + "__init__.py", "if sure or len(everything) == 1 else None", "if True else None"),
    (TRACE + "__init__.py", "saying[-1]}", "saying[0]}"),
    (TRACE + "__init__.py", "if finding.line or len(found) != 1:", "if len(found) != 1:"),
    (TRACE + "patches.py", "surely and not names_item(tokens)", "surely"),
    (TRACE + "patches.py", 'if not head.startswith("|"):', "if False:"),
    (TRACE + "patches.py", "if not self.exact:", "if False:"),
    (TRACE + "patches.py", 'if operation.get("op") in ("copy", "move"):', "if False:"),
    (
        TRACE + "layers.py",
        "found = [replace(one, layers=(*one.layers, *over)) for one in found]",
        "",
    ),
]
