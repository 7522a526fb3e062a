"""A cluster that cannot be used is one line that says what to do."""

from pathlib import Path

import pytest

ray = pytest.importorskip("ray")
from ray.exceptions import RayError  # noqa: E402 - only where Ray is

from attnbench.harness.files.errors import BadInput, EnvironmentUnmet, Spelling, spelled  # noqa: E402
from attnbench.harness.fleet.ray_cluster import backend_folders, connected  # noqa: E402

WANTS = "the cluster refuses the token or does not answer"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ConnectionError("Could not find any running Ray instance."),
            "no Ray cluster there (ConnectionE",
        ),
        (ConnectionError("Failed to connect to Ray cluster at 192.0.2.2:39737"), WANTS),
        (RayError("Token authentication is enabled but no token was found."), WANTS),
        (RuntimeError("Version mismatch"), "cannot be used (RuntimeError: Version mismatch)"),
    ],
)
def test_what_ray_cannot_connect_to_is_told_as_what_it_is(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def refuse(**_: object) -> None:
        raise error

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(EnvironmentUnmet) as refused, connected("auto", {}):
        pass
    text = spelled(str(refused.value), Spelling.SHELL)
    assert text.startswith(f"--address auto: {said}")
    assert ("RAY_AUTH_MODE=token" in text) == (said == WANTS)


@pytest.mark.parametrize("address", ["ray://head:10001", "head", "head:port", ":6379"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(BadInput, match="wanted auto, local or HOST:PORT"), connected(address, {}):
        pass


def test_where_nothing_answers_says_how_to_start_a_cluster() -> None:
    with pytest.raises(EnvironmentUnmet) as refused, connected("127.0.0.1:1", {}):
        pass
    assert "nothing answers there" in str(refused.value)
    assert "ray start --head" in str(refused.value)


def test_only_folders_of_the_users_own_backends_go_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fast.py").write_text("def prepare(problem, inputs, weights): ...\n")
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    assert backend_folders(["fast", "sdpa", "no_such", "f@module"]) == [tmp_path]
    assert backend_folders(["sdpa"]) == []
