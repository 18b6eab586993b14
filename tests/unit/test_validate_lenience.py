"""What validation takes for right in files, since something makes it so on the way to a cluster."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from things import check, thing

from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.validate.judge import Judge
from ocipack.validate.options import Options


def judged(text: str, dialect: Dialect = Dialect.FLUX) -> list[tuple[str, str]]:
    verdict = Judge(Options(dialect=dialect), check()).file(text.encode(), named=True)
    return [(finding.rule, finding.severity.value) for finding in verdict.findings]


def built(resource: Resource) -> list[tuple[str, str]]:
    findings = Judge(Options(), check()).built([resource])
    return [(finding.rule, finding.severity.value) for finding in findings]


def job(annotation: str, name: str = "generateName: migrate-") -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata:
  {name}
  annotations:
    {annotation}: PreSync
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: a, image: ghcr.io/example/a@sha256:{"a" * 64}}}]
"""


@pytest.mark.parametrize("annotation", ["argocd.argoproj.io/hook", "helm.sh/hook"])
def test_argo_cd_gives_a_name_to_a_hook(annotation: str) -> None:
    assert judged(job(annotation)) == [("object-identity", "note")]


def test_nobody_else_gets_a_name() -> None:
    wrong = [("object-identity", "error")]
    assert judged(job("example.com/hook")) == wrong
    assert judged(job("helm.sh/hook", "generateName: ''")) == wrong
    assert judged(job("helm.sh/hook", "labels: {}")) == wrong


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: a, image: %r}]}"


def test_only_flux_puts_in_variables() -> None:
    text = POD % ("'${APP}'", "ghcr.io/example/a:${TAG}")
    both = {"invalid-name", "image-malformed"}
    assert dict(judged(text)) == dict.fromkeys(both, "note")
    assert dict(judged(text, Dialect.KUBECTL)) == dict.fromkeys(both, "error")


ENC = "ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]"
SOPS = {
    "a binary file": f'{{"data": "{ENC}", "sops": {{"mac": "{ENC}"}}}}',
    "YAML": f"a: {ENC}\nsops:\n  mac: {ENC}\n",
    "dotenv": f"A={ENC}\nsops_mac={ENC}\n",
    "ini": f"[a]\nb = {ENC}\n[sops]\nmac = {ENC}\n",
}


def secret(**values: Any) -> Resource:
    return thing("v1", "Secret", **values)


@pytest.mark.parametrize("text", SOPS.values(), ids=SOPS)
def test_kustomize_controller_decrypts_whole_files_in_data_of_secrets(text: str) -> None:
    encoded = base64.b64encode(text.encode()).decode()
    assert built(secret(data={"a": encoded})) == [("secret-ciphertext", "note")]
    assert built(secret(stringData={"a": text})) == [("secret-ciphertext", "warning")]
    assert built(thing("v1", "ConfigMap", data={"a": text})) == [("secret-ciphertext", "warning")]


def test_it_leaves_a_part_of_a_file_as_it_is() -> None:
    encoded = base64.b64encode(f"a: {ENC}".encode()).decode()
    assert built(secret(data={"a": encoded})) == [("secret-ciphertext", "warning")]


def test_a_template_is_wrong_and_said_to_be_one() -> None:
    text = "apiVersion: v1\nkind: Pod\nspec:\n  {% for a in b %}\n  - {{ a }}\n  {% endfor %}\n"
    (found,) = Judge(Options(), check()).file(text.encode(), named=False).findings
    assert found.rule == "yaml-unreadable"
    assert "template" in found.hint
    (found,) = Judge(Options(), check()).file(b"kind: Pod\nspec: %\n", named=False).findings
    assert not found.hint
