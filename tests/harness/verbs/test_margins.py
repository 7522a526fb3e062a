"""harness/verbs/compare.py: gates as text and as files."""

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.verbs.compare import read_margins


@pytest.mark.parametrize(
    ("text", "margins"),
    [
        ("latency: 5%", {"latency": 0.05}),
        ("latency:5 %,peak_bytes:0%", {"latency": 0.05, "peak_bytes": 0.0}),
        ("energy_per_call_j: 2.5%", {"energy_per_call": 0.025}),
    ],
)
def test_a_gate_is_written_as_metrics_with_percentages(text, margins, tmp_path):
    assert read_margins(text) == pytest.approx(margins)
    file = tmp_path / "gate.yaml"
    file.write_text(text.replace(":", ": ").replace(",", "\n") + "\n")
    assert read_margins(str(file)) == pytest.approx(margins)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency: 5", "wanted a percentage"),
        ("latency: -5%", "wanted a percentage"),
        ("latency: nan%", "wanted a percentage"),
        ("latency: 5%, latency_ms: 6%", "given twice"),
        ("latency: 5%, ", "wanted metrics"),
        ("speed: 5%", "not a metric"),
        ("\x1b[31m: 5%", "not a metric"),
        ("", "empty"),
        ("no/such/file.yaml", "no such file"),
    ],
)
def test_another_gate_is_refused_in_one_line(text, said):
    with pytest.raises(BadInput, match=said) as refused:
        read_margins(text)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("latency: 5%\nspeed: 5%\n", ":2:1: 'speed'|:2:1: speed"),
        ("latency: 5\n", ":1:10: latency: found 5; wanted a percentage"),
        ("latency: [5%]\n", ":1:10: latency: found a list of 1"),
        ("latency: 5%\nlatency: 6%\n", ":2:1"),
        ("- latency\n", "found a list of 1; wanted metrics"),
        ("", "empty"),
        ("latency: {", "not valid YAML"),
        ("1: 5%\n", ":1:1"),
    ],
)
def test_a_bad_gate_file_is_refused_with_the_place(text, said, tmp_path):
    file = tmp_path / "gate.yaml"
    file.write_text(text)
    with pytest.raises(BadInput, match=said):
        read_margins(str(file))
