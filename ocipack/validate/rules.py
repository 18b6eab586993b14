"""Every rule of validation: what it says, how much it matters, how to mend it.

Ids are stable: they are written in ignore lists and read by machines. A finding takes its
severity from here unless the rule says that it depends.
"""

from __future__ import annotations

from dataclasses import dataclass

from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import join
from ocipack.report import Finding, Severity
from ocipack.validate.objects import finding

Path = tuple[str | int, ...]
ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True, slots=True)
class Rule:
    """`summary` is one line in the words of the reader, `mend` says what to do about a finding."""

    id: str
    severity: Severity
    summary: str
    mend: str


_TABLE = (
    # what an object is called, and that there is one
    Rule(
        "nothing-to-validate",
        ERROR,
        "there is no object at all, which proves nothing",
        "name the right directory; a root whose files hold only comments delivers nothing",
    ),
    Rule(
        "object-identity",
        ERROR,
        "an object without kind, apiVersion or name",
        "add what is missing; quote what looks like a number or a truth value",
    ),
    Rule(
        "object-duplicate",
        ERROR,
        "an object that is there twice in one root",
        "remove one: the cluster keeps whichever is applied last",
    ),
    # secrets
    Rule(
        "secret-plaintext",
        ERROR,
        "a Secret whose values are not encrypted",
        "encrypt it with SOPS, or let an operator fetch it",
    ),
    Rule(
        "secret-ciphertext",
        ERROR,
        "ciphertext where it will not be decrypted",
        "see that the Kustomization decrypts it, and that it is a whole SOPS document",
    ),
    # images
    Rule(
        "image-digest",
        ERROR,
        "an image that is named without its digest",
        "pin it: write image:tag@sha256:…",
    ),
    Rule(
        "image-malformed",
        ERROR,
        "an image that is no reference",
        "write registry/repository:tag@sha256:…",
    ),
    Rule(
        "image-missing",
        ERROR,
        "a container without an image",
        "name the image",
    ),
    # what a schema says
    Rule(
        "unknown-field",
        ERROR,
        "a field that the kind does not have",
        "correct the name, or move the field to where the kind has it",
    ),
    Rule(
        "wrong-type",
        ERROR,
        "a value of another type than the field takes",
        "quote a text that looks like a number or boolean, take the quotes off a number",
    ),
    Rule(
        "required-field",
        ERROR,
        "a field that must be there is absent, null or empty",
        "give the field a value",
    ),
    Rule(
        "unsupported-value",
        ERROR,
        "a value outside the list that the field takes",
        "take one of the listed values; their letter case counts",
    ),
    Rule(
        "out-of-range",
        ERROR,
        "a number, length or count outside the limits of the field",
        "stay within the limits that the message names",
    ),
    Rule(
        "invalid-format",
        ERROR,
        "a text that is not in the field's format",
        "write it as the message shows",
    ),
    Rule(
        "pattern-mismatch",
        ERROR,
        "a text that the field's regular expression does not match",
        "read the pattern in the message, or the documentation of the kind",
    ),
    Rule(
        "schema-combination",
        ERROR,
        "none, or too many, of the alternatives of a schema are met",
        "give exactly what one alternative asks for",
    ),
    # whether there is a schema
    Rule(
        "unknown-kind",
        ERROR,
        "an apiVersion and kind that no such Kubernetes version serves",
        "correct apiVersion or kind",
    ),
    Rule(
        "schema-missing",
        NOTE,
        "no schema is known for a kind, so its fields were not checked",
        "add the CustomResourceDefinition to the tree, or name it with --crd",
    ),
    Rule(
        "schema-required",
        ERROR,
        "no schema is known for a kind, and every kind must have one",
        "add the CustomResourceDefinition to the tree, or name it with --crd",
    ),
    Rule(
        "crd-invalid",
        ERROR,
        "a CustomResourceDefinition whose schema cannot be used",
        "correct the schema at the place that the message names",
    ),
    Rule(
        "crd-pattern-unchecked",
        WARNING,
        "a regular expression of a CustomResourceDefinition that could not be translated",
        "write the pattern in Go's syntax; until then its fields are checked without it",
    ),
    # APIs over time
    Rule(
        "api-removed",
        ERROR,
        "an API version that the target Kubernetes version no longer serves",
        "move to the API version that the hint names",
    ),
    Rule(
        "api-too-new",
        ERROR,
        "an API version that the target Kubernetes version does not serve yet",
        "use an older API version, or validate for a newer Kubernetes",
    ),
    Rule(
        "api-unserved",
        ERROR,
        "a version of a custom resource that its CustomResourceDefinition does not serve",
        "move to a served version",
    ),
    Rule(
        "api-deprecated",
        WARNING,
        "an API version that will be removed",
        "move to the API version that the hint names",
    ),
    Rule(
        "field-deprecated",
        WARNING,
        "a field that is deprecated",
        "replace it as the documentation of the kind says",
    ),
    # lists
    Rule(
        "duplicate-entry",
        ERROR,
        "two entries with one key in a list that is a map, or one value twice in a set",
        "keep one of the two; server-side apply refuses both",
    ),
    # names and places
    Rule(
        "invalid-name",
        ERROR,
        "a name, key or label that does not follow the rules of its kind",
        "write it in the alphabet and length that the message names",
    ),
    Rule(
        "namespace-on-cluster-kind",
        WARNING,
        "a namespace on an object that lives in none; it is ignored",
        "remove metadata.namespace",
    ),
    Rule(
        "read-only-field",
        WARNING,
        "a field that only the server writes, left over from an export",
        "remove it",
    ),
    Rule(
        "server-field-refused",
        ERROR,
        "a field that only the server writes, and that makes it refuse the object",
        "remove it",
    ),
    # sizes
    Rule(
        "object-too-large",
        ERROR,
        "an object, its data or its annotations over a limit of the server",
        "split it, or keep the content elsewhere",
    ),
    # what one kind asks for
    Rule(
        "secret-content",
        ERROR,
        "a Secret without what its type requires",
        "add the key, or use another type",
    ),
    Rule(
        "selector-mismatch",
        ERROR,
        "a selector that does not select the template's own pods",
        "give selector and template the same labels",
    ),
)
RULES: dict[str, Rule] = {rule.id: rule for rule in _TABLE}


def spell(path: Path) -> str:
    """`path` as the API server writes it: `spec.containers[0].name`, `metadata.labels[a/b]`."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif part.replace("_", "a").replace("-", "a").replace("$", "a").isalnum():
            out += f".{part}" if out else part
        else:
            out += f"[{part}]"
    return out or "(root)"


def found(
    rule: str,
    resource: Resource,
    message: str,
    path: Path = (),
    *,
    hint: str = "",
    severity: Severity | None = None,
) -> Finding:
    """A finding of `rule` about the value at `path` of `resource`."""
    return finding(
        rule,
        message,
        resource,
        pointer=join(*path),
        severity=severity or RULES[rule].severity,
        hint=hint,
    )
