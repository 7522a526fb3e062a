"""`run --dry-run`: the titles of its tables."""

from attnbench.harness.cli.dry_run import bytes_said

WALL = """
name: one
question: How long?
backends: [fused]
find_wall: true
grid: {d_model: 64, heads: 1}
limits: {memory_gib: 0.1}
"""


def test_one_wall_is_in_the_singular(attnbench, tmp_path):
    (tmp_path / "one.yaml").write_text(WALL)
    done = attnbench("run", "one.yaml", "--device", "cpu", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "one: 1 wall on cpu" in done.stdout


def test_a_dry_run_says_how_long_a_run_on_several_devices_takes(attnbench):
    done = attnbench("run", "quickstart", "--device", "cpu", "--dry-run", "--devices", "3")
    assert done.returncode == 0, done.stderr
    table = done.stdout.partition("on several devices of this kind, 11 groups")[2]
    assert [line.split()[0] for line in table.splitlines()[2:7]] == ["1", "3", "8", "64", "512"]
    assert "for the longest group, which is never split: 6 cases" in " ".join(table.split())
    assert "Times from its work and the plan's limits" in table


def test_a_dry_run_of_a_shard_has_its_cases_only(attnbench):
    shards = [
        attnbench("run", "quickstart", "--device", "cpu", "--dry-run", "--shard", f"{n}/2").stdout
        for n in (1, 2)
    ]
    cases = [
        {word for word in shard.split() if word.startswith(("naive-", "fused-", "sdpa-"))}
        for shard in shards
    ]
    assert not cases[0] & cases[1]
    assert len(cases[0] | cases[1]) == 36
    assert all(f"Shard {n}/2: " in shard for n, shard in enumerate(shards, start=1))


def test_a_budget_is_read_at_a_glance_and_exact():
    assert bytes_said(16_211_355_238) == "15.1 GiB (16,211,355,238 bytes)"
