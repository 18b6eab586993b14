"""Faults to plant in the nouns of content, in delivery and in the command line."""

from __future__ import annotations

TESTS = [
    "tests/unit/test_oci.py",
    "tests/unit/test_tag.py",
    "tests/unit/test_copy.py",
    "tests/unit/test_copy_attached.py",
    "tests/unit/test_cli.py",
    "tests/unit/test_errors_and_report.py",
    "tests/chain/test_commands.py",
    "tests/chain/test_order.py",
    "tests/test_architecture.py",
]

OCI = "ocipack/oci/"

FAULTS: list[tuple[str, str, str]] = [
    # what content is
    (OCI + "descriptor.py", "if hasher.hexdigest() != self.digest.hex:", "if False:"),
    (OCI + "descriptor.py", "if seen > self.size:", "if False:"),
    (OCI + "descriptor.py", "if seen != self.size:", "if False:"),
    (OCI + "descriptor.py", "if self.size < 0:", "if False:"),
    (
        OCI + "digest.py",
        "pattern is None or not pattern.fullmatch",
        "pattern is None or not pattern.match",
    ),
    (
        OCI + "manifest.py",
        'if any(member in document for member in foreign) or "fsLayers"',
        'if "fsLayers"',
    ),
    (OCI + "manifest.py", 'document.get("mediaType", self.media_type) != self.media_type', "False"),
    (OCI + "jsontext.py", "if len(found) != len(pairs):", "if False:"),
    (OCI + "jsontext.py", "if _SURROGATE.search(raw):", "if False:"),
    (OCI + "store.py", "if target.size > limit:", "if False:"),
    (OCI + "reference.py", "if port.isdigit() and int(port) > 65535:", "if False:"),
    (
        OCI + "reference.py",
        "_REFERENCE.fullmatch(text)\n        if match",
        "_REFERENCE.match(text)\n        if match",
    ),
    # what is delivered, and in which order
    ("ocipack/ship.py", "if not report.ok:", "if False:"),
    ("ocipack/ship.py", "if known is not None or dry_run:", "if known is not None:"),
    ("ocipack/ship.py", "if not _same(known, artifact.manifest):", "if False:"),
    ("ocipack/ship.py", "return _said(known) == _said(fresh)", "return True"),
    ("ocipack/ship.py", "(known.config, known.layers) != (fresh.config, fresh.layers)", "False"),
    ("ocipack/ship.py", "if reference.digest not in (None, artifact.root.digest):", "if False:"),
    (
        "ocipack/ship.py",
        "proofs = [verify(store, reference.at(before), one, content=content) for one in policies]",
        "proofs = [known]  # type: ignore",
    ),
    (
        "ocipack/ship.py",
        "tagged = tag(store, proof.descriptor, before)",
        "tagged = tag(store, proof.descriptor, {name: artifact.root.digest})",
    ),
    ("ocipack/tag.py", "if now[name] not in (None, target.digest):", "if False:"),
    ("ocipack/tag.py", "if now[name] not in (was, target.digest):", "if False:"),
    ("ocipack/tag.py", "store.tag(target, name, was=expected[name])", "store.tag(target, name)"),
    (
        "ocipack/copy/survey.py",
        "if not self._wanted.overwrite and not self._holds_all(target, there):",
        "if False:",
    ),
    (
        "ocipack/copy/survey.py",
        "if found.subject is None or found.subject.digest != node.digest:",
        "if found.subject is None:",
    ),
    # what the command line lets through
    (
        "ocipack/cli/commands/pack.py",
        "if where.reference.tag is not None:",
        "if False:",
    ),
    (
        "ocipack/cli/commands/verify.py",
        "require_digest and location.reference.digest is None",
        "False",
    ),
    (
        "ocipack/cli/commands/verify.py",
        "whole = self.how.content or where.is_layout",
        "whole = self.how.content",
    ),
    (
        "ocipack/cli/trusted.py",
        "if not self.given and not self.allow_unsigned:",
        "if False:",
    ),
    ("ocipack/cli/trusted.py", "content=where.is_layout)", "content=False)"),
    ("ocipack/cli/packing.py", "if dirt and not seen.how.allow_dirty:", "if False:"),
    ("ocipack/cli/commands/render.py", "if not made.report.ok:", "if False:"),
    ("ocipack/cli/console.py", "re.sub(_CONTROL, lambda m:", "re.sub('$^', lambda m:"),
    ("ocipack/cli/passwords.py", "if not sys.stdin.isatty():", "if False:"),
]
