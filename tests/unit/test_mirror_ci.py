"""The manifests of ci/: valid, and saying what the command takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ocipack.cli.app import run
from ocipack.cli.commands.mirror import command
from ocipack.lock import Lock
from ocipack.mirror.plan import Shard
from ocipack.mirror.reader import read
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy.reader import read as read_policy

CI = Path(__file__).parents[2] / "ci"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((CI / name).read_text(encoding="utf-8")))


def test_they_are_valid() -> None:
    assert run(["validate", str(CI), "--require-schema", "--quiet"]) == 0


def test_the_mirror_file_and_its_policy_are_read() -> None:
    data = documents("mirror-cronjob.yaml")[0]["data"]

    made = read(data["mirror.yaml"].encode(), file="mirror.yaml", lock=lambda _: Lock())

    assert made.policies == ("policy.yaml",)
    keys = {"cosign.pub": PublicKey.parse(data["cosign.pub"].encode())}
    (policy,) = read_policy(data["policy.yaml"].encode(), file="policy.yaml", key=keys.__getitem__)
    assert policy.name == "mirrored"


def test_each_part_of_the_job_is_one_of_all() -> None:
    (job,) = documents("mirror-job.yaml")
    spec = job["spec"]
    arguments = spec["template"]["spec"]["containers"][0]["args"]
    part = arguments[arguments.index("--shard") + 1]

    for index in range(spec["completions"]):
        assert Shard.parse(part.replace("$(PART)", str(index))).count == spec["completions"]


def test_what_containers_are_told_is_what_the_command_takes() -> None:
    pods = [documents("mirror-job.yaml")[0]["spec"]["template"]]
    pods.append(documents("mirror-cronjob.yaml")[1]["spec"]["jobTemplate"]["spec"]["template"])
    for pod in pods:
        name, *arguments = pod["spec"]["containers"][0]["args"]
        assert name == "mirror"
        command.make_context("mirror", [one.replace("$(PART)", "0") for one in arguments])
