"""The table at the end of a search for walls."""

from attnbench.harness.cli.wall_table import MORE_TIME, _reason

ROW = {"status": "ok", "reason": "", "predicted_reason": "", "probes": []}


def test_a_wall_that_time_ended_names_what_gives_it_more():
    assert _reason({**ROW, "limited_by": "time"}) == MORE_TIME
    assert "--budget" in MORE_TIME
    assert _reason({**ROW, "limited_by": "memory"}) == ""
