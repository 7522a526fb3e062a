"""`run --dry-run`: the titles of its tables."""

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
