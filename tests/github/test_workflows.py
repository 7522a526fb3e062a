"""Workflows and the action follow GitHub's rules and name only what exists."""

import json
import re
import subprocess
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.github.workflow_files import ACTION, action, parsed, steps, texts, workflows

WORKFLOWS = workflows()
DOCUMENTS = WORKFLOWS | {"action.yml": action()}
CALLED = ROOT / ".github" / "workflows" / "attnbench.yml"


def inputs_of(document: Any) -> dict[str, Any]:
    triggers = document.get("on")
    called = triggers.get("workflow_call", {}) if isinstance(triggers, dict) else {}
    return document.get("inputs") or called.get("inputs", {})


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_what_github_wants_and_may_only_read(name: str) -> None:
    document = WORKFLOWS[name]
    assert document["on"]
    assert document["permissions"] == {"contents": "read"}
    for job in document["jobs"].values():
        assert ("uses" in job) != ("runs-on" in job and bool(job["steps"]))


def test_the_action_is_a_composite_whose_every_script_names_its_shell() -> None:
    document = DOCUMENTS["action.yml"]
    assert document["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in steps(document) if "run" in step)
    assert all(
        one["description"] and ("default" in one) != one.get("required", False)
        for one in document["inputs"].values()
    )


@pytest.mark.long
@pytest.mark.parametrize("name", DOCUMENTS)
def test_scripts_are_bash_and_take_what_others_wrote_as_variables_only(name: str) -> None:
    for step in steps(DOCUMENTS[name]):
        if "run" not in step:
            continue
        # An expression would be pasted into the script before bash sees it, whatever is in it.
        assert "${{" not in step["run"]
        subprocess.run(["bash", "-n"], input=step["run"], text=True, check=True)
        used = re.findall(r"\$\{?(?!GITHUB_)([A-Z_]+)", step["run"])
        known = {*step.get("env", ()), *re.findall(r"\b([A-Z_]+)=", step["run"])}
        assert set(used) <= known, step


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_input_and_step_that_is_named_exists_and_every_input_is_used(name: str) -> None:
    document = DOCUMENTS[name]
    text = json.dumps(document)
    named = set(re.findall(r"\binputs\.([a-z-]+)", text))
    assert named == set(inputs_of(document))
    ids = {step.get("id") for step in steps(document)}
    assert set(re.findall(r"\bsteps\.([a-z]+)\.outputs", text)) <= ids


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_used_exists_and_gets_inputs_that_it_has(name: str) -> None:
    document = DOCUMENTS[name]
    for user in [*steps(document), *document.get("jobs", {}).values()]:
        path = user.get("uses", "")
        if not path:
            continue
        given = set(user.get("with", {}))
        ours = re.fullmatch(
            r"(?:\.|OWNER/attnbench)/(?:attnbench/)?(\.github/(?:actions/attnbench|workflows/attnbench\.yml))(?:@REF)?",
            path,
        )
        if ours is None:
            assert re.fullmatch(r"(actions|pypa)/[a-z-]+@[0-9a-f]{40}", path), path
            if path.startswith("actions/checkout@"):
                assert user["with"]["persist-credentials"] is False  # no token for what runs next
            continue
        file = ACTION if ours[1].endswith("attnbench") else CALLED
        assert (ROOT / ours[1]).exists()
        wanted = inputs_of(parsed(file.read_text()))
        assert given <= set(wanted)
        assert {one for one, of in wanted.items() if of.get("required")} <= given


def test_an_action_of_others_is_one_commit_everywhere_whose_version_stands_beside_it() -> None:
    """A tag can be moved to other code, a commit cannot."""
    pins: dict[str, set[str]] = {}
    for text in texts():
        for name, pin in re.findall(r"uses: ((?:actions|pypa)/[a-z-]+)@(.*)", text):
            assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin), f"{name}@{pin}"
            pins.setdefault(name, set()).add(pin)
    assert {"actions/checkout", "actions/setup-python", "actions/upload-artifact"} <= set(pins)
    assert all(len(found) == 1 for found in pins.values()), pins


def test_only_the_jobs_that_publish_may_write_and_they_run_no_code_of_ours() -> None:
    for name, document in DOCUMENTS.items():
        writing = {
            job: of["permissions"]
            for job, of in document.get("jobs", {}).items()
            if "permissions" in of
        }
        granted = {
            "publish": {"id-token": "write", "attestations": "write"},
            "announce": {"contents": "write"},
        }
        assert writing == (granted if name == "release.yml" else {})
    release = WORKFLOWS["release.yml"]
    assert release["on"] == {"push": {"tags": ["v*"]}}
    publish = release["jobs"]["publish"]
    assert (publish["needs"], publish["environment"]) == ("build", "release")
    used = [step["uses"].split("@")[0] for step in publish["steps"]]
    assert used == [
        "actions/download-artifact",
        "actions/attest-build-provenance",
        "pypa/gh-action-pypi-publish",
    ]
    announce = release["jobs"]["announce"]
    assert announce["needs"] == "publish"  # so a reviewer has approved it
    got, told = announce["steps"]
    assert got["uses"].startswith("actions/download-artifact@")
    assert told["run"].startswith('gh release create "$TAG" ')
    assert "secrets." not in json.dumps(release)


def test_what_is_released_was_built_and_tried_from_the_tag() -> None:
    build = WORKFLOWS["release.yml"]["jobs"]["build"]
    (made,) = (step for step in build["steps"] if "run" in step)
    assert made["run"] == "make dist LOCK=.ci/locked.txt"
    assert made["env"] == {"TAG": "${{ github.ref_name }}"}
    assert not any("cache" in step.get("with", {}) for step in build["steps"])
