"""Which files of a tree some kustomization reads, so that they are not judged by themselves."""

from __future__ import annotations

from ocipack.validate.roots import Roots, roots

CM = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"


def found(kustomization: str, **more: bytes) -> Roots:
    files = {"app/kustomization.yaml": kustomization.encode(), "app/c.yaml": CM}
    files |= {name.replace("__", "/") + ".yaml": data for name, data in more.items()}
    return roots(files, files.__getitem__)


def test_a_patch_in_the_old_form_is_refused_and_no_object() -> None:
    """kustomize before 3.0 took names of files under `patches`, and says no to them since."""
    made = found("resources: [c.yaml]\npatches: [patch.yaml]\n", app__patch=CM)
    (finding,) = made.report.findings
    assert (finding.rule, finding.pointer) == ("kustomization-field", "/patches/0")
    assert "path:" in finding.hint
    assert made.used == {"app/c.yaml", "app/patch.yaml"}


def test_a_patch_in_the_old_form_may_not_lead_out_either() -> None:
    made = found("resources: [c.yaml]\npatches: [../../patch.yaml]\n")
    assert {f.rule for f in made.report.findings} == {
        "kustomization-field",
        "kustomization-outside",
    }
    assert made.used == {"app/c.yaml"}


def test_other_entries_that_should_be_mappings_name_nothing() -> None:
    made = found("resources: [c.yaml]\nimages: [patch.yaml]\n", app__patch=CM)
    (finding,) = made.report.findings
    assert (finding.rule, finding.hint) == ("kustomization-field", "")
    assert made.used == {"app/c.yaml"}
