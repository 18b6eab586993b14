"""Faults to plant in what the project file says, and in the work on several artifacts."""

from __future__ import annotations

TESTS = [
    "tests/unit/test_project.py",
    "tests/unit/test_project_survey.py",
    "tests/unit/test_strict.py",
    "tests/chain/test_init.py",
    "tests/chain/test_ship_project.py",
]

CLI = "ocipack/cli/"
PROJECT = "ocipack/project/__init__.py"
READER = "ocipack/project/reader.py"
PROJECTS = CLI + "projects.py"
SHIP = CLI + "commands/ship.py"
SURVEY = "ocipack/project/survey.py"

FAULTS: list[tuple[str, str, str]] = [
    # what a stranger's file must not do
    (PROJECTS, "if posixpath.commonpath([real, home]) != home:", "if False:"),
    (PROJECTS, "for path in listing(found).files.values():", "for path in ():"),
    (PROJECTS, "if real != posixpath.join(", "if False and real != posixpath.join("),
    (PROJECT, "for path in (*self.policy, *(one", "for path in (*(one"),
    (PROJECT, 'if one.startswith("oci://") and Location', "if False and Location"),
    (PROJECT, "for path in self.policy:\n            check_name(path)", "pass"),
    (PROJECTS, "    app.registries.confine(project.registries)\n    return", "    return"),
    (PROJECTS, "app.registries.confine(read_project(given, base).registries)", "pass"),
    (CLI + "registries.py", "self.allowed = (*registries, *hub)", "pass"),
    # what the file says
    (PROJECT, "self.named(environment.artifacts)", "pass"),
    (PROJECT, 'self.flux.split("."))) < _READS_BUNDLES:', 'self.flux.split("."))) < (0, 0):'),
    (READER, "ignore=(*above.ignore, ", "ignore=(*(), "),
    (READER, "policy=_joined(above.policy, ", "policy=_joined((), "),
    (SHIP, "dict.fromkeys((*part.policy, *here))", "dict.fromkeys(part.policy)"),
    (SHIP, "if files := self.how.policies or own:", "if files := own or self.how.policies:"),
    ("ocipack/ship.py", "for one in policies]", "for one in policies[:1]]"),
    (SHIP, "if environment is not None and environment.tag and", "if False and"),
    (SHIP, 'form if was_given("form") else sign.format or form', "sign.format or form"),
    (SHIP, "found.project.check_format(chosen)", "pass"),
    # several artifacts
    (SHIP, "excuses.whole &= not results.failures", "pass"),
    (CLI + "several.py", "except OcipackError as error:", "except ZeroDivisionError as error:"),
    (CLI + "several.py", "min((error.exit_code", "max((error.exit_code"),
    ("ocipack/flux/origin.py", "elif name.startswith(inside):", "else:"),
    (
        "ocipack/flux/origin.py",
        "if not name or inside.startswith(",
        "if False and inside.startswith(",
    ),
    (
        CLI + "packing.py",
        "with placing(_prefix(root)):\n            found",
        "if True:\n            found",
    ),
    ("ocipack/validate/ignores.py", "judged = own if used is not None else", "judged ="),
    ("ocipack/validate/versions.py", "if len(versions) == len(reports)", "if True"),
    # a first file
    (CLI + "commands/init.py", "if os.path.lexists(path) and not force:", "if False:"),
    (SURVEY, "if not outside:", "if True:"),
    (SURVEY, "foreign = source.name != _SYNC and source.urls", "foreign = False"),
    ("ocipack/project/draft.py", 'return re.sub(r"[^ -~]", "?", text)', "return text"),
]
