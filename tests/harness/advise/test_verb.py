"""attnbench advise: what it prints, as text, JSON and page; what it measures; what it refuses."""

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import ran

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "torch_dtype": "float32",
    "vocab_size": 100,
}


@pytest.fixture
def tiny(tmp_path) -> Path:
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(TINY))
    return path


def test_a_model_that_does_not_fit_is_said_first_on_the_terminal_the_page_and_in_json(
    here, tmp_path
):
    """It said "3 GiB in all, which fits beside the weights" of a model that takes 131 GiB."""
    page = tmp_path / "advice.html"
    asked = ("advise", "llama-3-70b", "--memory-gib", "48", "--device", "cpu")
    said = (
        "llama-3-70b does not fit in 48 GiB: its weights take 131 GiB in bf16, so 3 devices of"
        " 48 GiB or more."
    )
    done = here(*asked, "--out", str(tmp_path), "-o", str(page))
    assert done.stdout.splitlines()[0] == said
    assert said in page.read_text(encoding="utf-8").partition("<h2")[0]
    found = json.loads(here(*asked, "--out", str(tmp_path), "--json").stdout)
    assert found["answer"].startswith(said)
    assert (found["devices_for_weights"], found["weight_bytes"]) == (3, 2 * 70_553_706_496)
    longest = {(one["context"], one["limit"]) for one in found["longest"]}
    assert longest == {(0, "weights")}


@pytest.mark.parametrize(
    ("dtype", "asked", "item_bytes", "guessed"),
    [
        ("bfloat16", (), 2, False),
        ("bfloat16", ("--dtype", "fp32"), 4, False),
        (None, (), 4, True),
        ("float8_e4m3fn", (), 4, True),
        (None, ("--dtype", "fp16"), 2, False),
    ],
)
def test_weights_have_the_dtype_that_is_given_or_the_configurations_and_a_guess_is_called_so(
    here, tmp_path, monkeypatch, dtype, asked, item_bytes, guessed
):
    from attnbench.harness.models import resolve

    monkeypatch.setattr(resolve, "find_spec", lambda _: None)
    config = tmp_path / "config.json"
    data = {**TINY, "intermediate_size": 96, "torch_dtype": dtype}
    config.write_text(json.dumps(data))
    given = ("--memory-gib", "1", "--device", "cpu", "--out", str(tmp_path))
    found = json.loads(here("advise", str(config), *asked, *given, "--json").stdout)
    layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 64
    assert found["weight_bytes"] == item_bytes * (2 * layer + 2 * 100 * 64 + 64)
    assert bool(found["dtype_guess"]) == guessed
    assert ("which is a guess" in found["answer"]) == guessed


def test_the_dtype_that_is_given_counts_more_than_that_of_the_files(here, tmp_path, monkeypatch):
    from attnbench.harness.models import resolve

    save_file = pytest.importorskip("safetensors.torch").save_file
    import torch

    monkeypatch.setattr(resolve, "find_spec", lambda _: None)
    (tmp_path / "config.json").write_text(json.dumps({**TINY, "intermediate_size": 96}))
    save_file({"w": torch.zeros(5)}, tmp_path / "model.safetensors")
    given = ("--memory-gib", "1", "--device", "cpu", "--out", str(tmp_path), "--json")
    kept = json.loads(here("advise", str(tmp_path), *given).stdout)
    asked = json.loads(here("advise", str(tmp_path), "--dtype", "fp16", *given).stdout)
    assert (kept["weight_bytes"], "files" in kept["weights_source"]) == (20, True)
    assert asked["weight_bytes"] > 20


def test_a_chunk_and_a_draft_are_asked_for_with_their_own_number_of_tokens(here, tmp_path):
    phases = ("--phase", "chunk,verify", "--chunk", "64", "--draft", "7")
    asked = ("advise", "gpt2", *phases, "--device", "cpu", "--out", str(tmp_path), "--json")
    found = json.loads(here(*asked, check=True).stdout)
    assert [one["phase"] for one in found["decisions"]] == ["chunk", "verify"]
    assert [one.split("--queries ")[1].split()[0] for one in found["commands"]] == ["64", "8"]


@pytest.mark.long
def test_measuring_answers_and_a_second_time_rows_answer_without_torch(attnbench, tiny, tmp_path):
    out, page = tmp_path / "results", tmp_path / "advice.html"
    asked = ("advise", str(tiny), "--device", "cpu", "--out", str(out))
    done = attnbench(*asked, "--measure", "-o", str(page), timeout=400, check=True)
    assert done.stdout.splitlines()[1].startswith("Use attn_implementation=")
    assert "prefill of 256 tokens" in done.stdout
    assert "<h1>Attention for tiny</h1>" in page.read_text()
    code = (
        "import sys; sys.argv = ['attnbench', *sys.argv[1:]]\n"
        "from attnbench.harness.verbs.app import main\n"
        "try: main()\n"
        "finally: print('torch' in sys.modules, file=sys.stderr)"
    )
    again = ran([sys.executable, "-P", "-c", code, *asked, "--json"], check=True)
    found = json.loads(again.stdout)
    assert found["missing"] == []
    names = {one["attn_implementation"] for one in found["decisions"]}
    assert names <= {"eager", "sdpa", "flex_attention"}
    assert None not in names
    assert again.stderr.splitlines()[-1] == "False"
    assert {one["context"] for one in found["longest"] if one["context"]} == {256}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing-like-it",), "no model 'nothing-like-it'"),
        (("gpt2", "--context", "2k"), "takes at most 1024 tokens"),
        (("gpt2", "--context", "much"), "wanted a number of tokens"),
        (("gpt2", "--context", "0"), "wanted a number of tokens"),
        (("gpt2", "--phase", "dreaming"), "wanted one of prefill, chunk, decode"),
        (("bert-base", "--phase", "verify"), "has no decoder"),
        (("gpt2", "--chunk", "64"), "wanted it with --phase chunk"),
        (("gpt2", "--kv-dtype", "q5"), "wanted one of fp8, q8, q4"),
        (("gpt2", "--dtype", "int8"), "wanted one of"),
        (("gpt2", "--tp", "7"), "cannot be divided by 7"),
        (("gpt2", "--memory-gib", "-1"), "above 0"),
        (("gpt2", "--device", "cuda"), "--device cpu"),
    ],
)
def test_bad_questions_are_one_line_each(here, tmp_path, arguments, said):
    done = here("advise", *arguments, "--out", str(tmp_path))
    assert done.returncode in (2, 4)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not done.stdout


def test_bytes_are_told_of_a_model_that_cannot_be_measured_and_the_exit_code_says_so(
    here, tmp_path
):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "bloom", "n_layer": 2, "n_head": 8}))
    pytest.importorskip("transformers")
    asked = ("advise", str(config), "--device", "cpu", "--memory-gib", "1", "--context", "1k")
    done = here(*asked, "--kv-dtype", "q8", "--out", str(tmp_path), "--json")
    assert done.returncode == 3
    found = json.loads(done.stdout)
    cache = 2 * 2 * 64 * 1024 * 34 // 32
    assert [one["cache_bytes"] for one in found["memory"]] == [cache, cache]
    assert found["weight_bytes"] > 0
    assert found["longest"] == []
    (sequences,) = found["sequences"]
    assert sequences["fit"] == ((1 << 30) - found["weight_bytes"]) // cache
    assert len([one for one in found["sentences"] if "distance" in one]) == 1


def test_a_hostile_configuration_ends_in_one_line(here, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**TINY, "intermediate_size": 96, "vocab_size": 1e999}))
    done = here("advise", config, "--device", "cpu", "--out", tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
