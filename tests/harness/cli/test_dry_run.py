"""`run --dry-run`: the titles of its tables."""


def test_a_dry_run_of_a_shard_has_its_cases_only(here):
    shards = [
        here("run", "quickstart", "--device", "cpu", "--dry-run", "--shard", f"{n}/2").stdout
        for n in (1, 2)
    ]
    cases = [
        {word for word in shard.split() if word.startswith(("naive-", "fused-", "sdpa-"))}
        for shard in shards
    ]
    assert not cases[0] & cases[1]
    assert len(cases[0] | cases[1]) == 36
    assert all(f"Shard {n}/2: " in shard for n, shard in enumerate(shards, start=1))
