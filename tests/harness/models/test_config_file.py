"""Finding and reading a configuration."""

import os
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.models import config_file

KEYS = ",".join(f'"{min(number, 98_999)}":1' for number in range(99_001))  # the last one twice


def test_a_shipped_name_a_file_and_its_folder_are_found(tmp_path: Path) -> None:
    assert config_file.find("llama-3-8b").name == "llama-3-8b.json"
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert config_file.find(str(tmp_path)) == tmp_path / "config.json"
    assert config_file.find(str(tmp_path / "config.json")) == tmp_path / "config.json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", ":1:2: "),
        ('{"a": 1, "a": 2}', "'a' is given twice"),
        ("[" * 100 + "]" * 100, "100 levels of brackets"),
        ("[1]", "wanted a JSON object"),
        ("9" * 5000, "config.json: "),
        (" " * (config_file.MAX_BYTES + 1), "larger than 8 MiB"),
        ("\ud800", "not UTF-8"),
        (f"{{{KEYS}}}", "'98999' is given twice"),
        ('{"a": {"n_layer": 10000000}}', "'n_layer': 10000000; wanted at most 4096"),
        ('{"num_local_experts": 5000}', "'num_local_experts': 5000; wanted at most 4096"),
        (f'{{"max_position_embeddings": {10**400}}}', "'max_position_embeddings': 1000"),
    ],
)
def test_what_is_no_configuration_is_refused_in_one_line(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(BadInput) as caught:
        config_file.read(path)
    (line,) = caught.value.problems
    assert line.startswith(str(path))
    assert said in line


def test_a_missing_file_a_folder_and_a_pipe_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing.json", "pipe", "."):
        with pytest.raises(BadInput):
            config_file.read(tmp_path / name)
