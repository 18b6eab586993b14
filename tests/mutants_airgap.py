"""Faults to plant in what carries content across an air gap: each must make a test fail.

`FAULTS` holds (file, what stands there, what to put in its place); `tests/mutants.py` plants them.
"""

from __future__ import annotations

TESTS = ["tests/unit/test_airgap_tar.py", "tests/unit/test_airgap.py"]

ARCHIVE, VOLUMES = "ocipack/stores/layout/archive.py", "ocipack/stores/layout/volumes.py"
STREAM, AIRGAP = "ocipack/stores/layout/stream.py", "ocipack/airgap/"
USTAR = "ocipack/tree/ustar.py"

FAULTS: list[tuple[str, str, str]] = [
    # reading a tar
    (ARCHIVE, "        if name not in found:", "        if False:"),
    (ARCHIVE, "length = head.size if size is None else size", "length = head.size"),
    (ARCHIVE, "if name in found or (is_folder and name in folders):", "if False:"),
    (ARCHIVE, "if len(found) + len(folders) > MEMBERS:", "if False:"),
    (ARCHIVE, "if head.kind == ustar.REGULAR and listed:", "if head.kind == ustar.REGULAR:"),
    (ARCHIVE, "if head.kind == ustar.REGULAR and listed:", "if listed:"),
    (ARCHIVE, "in _FOLDERS:\n            return plain", "is not None:\n            return plain"),
    (
        ARCHIVE,
        "if path is not None or size is not None:\n                    raise",
        "if False:\n                    raise",
    ),
    (
        ARCHIVE,
        "if path is not None or size is not None:\n            raise",
        "if False:\n            raise",
    ),
    (
        ARCHIVE,
        "if ustar.pax_path(self._small(head.size)) is not None:",
        "if self._small(head.size) is None:",
    ),
    (ARCHIVE, "if self._at + size > self._parts.size:", "if False:"),
    (ARCHIVE, "if size > HEADER:", "if False:"),
    (ARCHIVE, "if rest > TAIL or any(", "if any("),
    (ARCHIVE, "or any(self._parts.take(self._at, rest)):", "or False:"),
    (ARCHIVE, "if rest < ustar.BLOCK:", "if False:"),
    (ARCHIVE, "wrong.append(name)", "pass"),
    (ARCHIVE, "if said != found:", "if False:"),
    (ARCHIVE, "if size > first or (size != first and not last) or not size:", "if False:"),
    (USTAR, "or int(size) <= LARGEST:", "or False:"),
    (USTAR, "size if size <= LARGEST else 0", "size % 8**11"),
    # writing one
    (STREAM, "if parts.take(at, len(head)) != head:", "if False:"),
    (STREAM, "if hasher.hexdigest() != member.digest.hex or", "if"),
    (STREAM, "if not self._replace and (there", "if False and (there"),
    (STREAM, "if seen != member.size:", "if False:"),
    (
        STREAM,
        "if self._sink is None or self._next != len(self._members):",
        "if self._sink is None:",
    ),
    (STREAM, "return number, before", "return number, sums"),
    (
        STREAM,
        "if kind is None:\n                self._finish()",
        "if True:\n                self._finish()",
    ),
    (VOLUMES, "if old not in names:", "if False:"),
    (VOLUMES, "if found not in ours:", "if False:"),
    (VOLUMES, "if not name.is_file() or name.stat().st_size > volume:", "if not name.is_file():"),
    (VOLUMES, "if self._number == VOLUMES:", "if False:"),
    (VOLUMES, "or [name for _, name in lines] != [one.name for one in names]", ""),
    (VOLUMES, 'or _LINE.sub("", text)', ""),
    (VOLUMES, "if file.size > _LIST:", "if False:"),
    (VOLUMES, "os.ftruncate(self._handle, at)", "pass"),
    # what an archive says
    (
        AIRGAP + "site.py",
        "if name and named.setdefault(name, target) != target:",
        "if name and named.setdefault(name, target) is None:",
    ),
    (AIRGAP + "site.py", "if reference.digest not in (None, target.digest):", "if False:"),
    (AIRGAP + "site.py", "if self.record.index != record.sealed(document):", "if False:"),
    (AIRGAP + "site.py", "if held + target.size > HELD:", "if False:"),
    (
        AIRGAP + "site.py",
        "if found.subject is None and found.artifact_type == record.ARTIFACT_TYPE:",
        "if False:",
    ),
    (AIRGAP + "site.py", "if size is None or size > limit:", "if size is None:"),
    (AIRGAP + "site.py", "len(entries) > ENTRIES:", "False:"),
    (AIRGAP + "site.py", "if target.digest not in self.left_out:", "if False:"),
    (AIRGAP + "site.py", "if len(loose) > ENTRIES:", "if False:"),
    (AIRGAP + "check.py", "if count > PARTS:", "if False:"),
    (AIRGAP + "contents.py", "if self._parts > PARTS:", "if False:"),
    (
        AIRGAP + "site.py",
        "held = self._counted(held, target)\n            loose |=",
        "loose |=",
    ),
    (AIRGAP + "check.py", "and target.digest not in loose:", "and True:"),
    (AIRGAP + "site.py", "if len(found) > 1:", "if False:"),
    (
        AIRGAP + "site.py",
        "return target.check(self.files.read(path))",
        "return self.files.read(path)",
    ),
    (
        AIRGAP + "record.py",
        "for path in self.files:\n            check_name(path)",
        "for path in ():\n            check_name(path)",
    ),
    (AIRGAP + "record.py", "if path in found:", "if False:"),
    (AIRGAP + "record.py", "if strange := sorted(", "if strange := [] and sorted("),
    (AIRGAP + "check.py", "if size != target.size:", "if False:"),
    (AIRGAP + "check.py", "if not site.items:", "if False:"),
    (
        AIRGAP + "contents.py",
        "and known.size == target.size and not needed:",
        "and known.size == target.size:",
    ),
    (AIRGAP + "contents.py", "and known.size == target.size and not needed:", "and not needed:"),
    (AIRGAP + "contents.py", "if known != target.size:", "if False:"),
    (
        AIRGAP + "contents.py",
        "and len(tagged[name := _tagged(reference)]) == 1",
        "and (name := _tagged(reference))",
    ),
    (
        AIRGAP + "contents.py",
        "for name, targets in short.items() if len(targets) == 1",
        "for name, targets in short.items()",
    ),
    (AIRGAP + "contents.py", 'if is_of_a_digest(one.reference.tag or ""):', "if False:"),
    (
        AIRGAP + "save.py",
        "return target.check(source.fetch(target))",
        "return source.fetch(target)",
    ),
    # what is loaded
    (AIRGAP + "load.py", "if other != item.bare:", "if False:"),
    (AIRGAP + "load.py", "== self.whole.item.target.digest\n", "\n"),
    (AIRGAP + "load.py", "self._find_left_out(one)", "pass"),
    (AIRGAP + "load.py", 'tag if alone else ""', "tag"),
]
