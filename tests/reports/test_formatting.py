"""reports/formatting.py: numbers as people write them, and text made safe to print."""

from attnbench.reports.formatting import (
    beyond_whole,
    bytes_text,
    count_text,
    flops_text,
    kernel_text,
    list_text,
    number_text,
    share_text,
    size_text,
    time_text,
    times_text,
    whole_text,
)


def test_numbers_read_well() -> None:
    assert [count_text(n) for n in (1, 128, 1000, 1024, 12288, 131072)] == [
        "1",
        "128",
        "1000",
        "1k",
        "12k",
        "128k",
    ]
    assert [bytes_text(n) for n in (512, 1 << 20, 3 << 29, None)] == [
        "512 B",
        "1 MiB",
        "1.5 GiB",
        "",
    ]
    assert [time_text(t) for t in (3.2, 0.0123, 2500.0, None)] == [
        "3.20 ms",
        "12.3 μs",
        "2.50 s",
        "",
    ]
    assert flops_text(1.07e9) == "1.07 GFLOP"
    assert [number_text(x) for x in (1.0, 12.34, 123.4, 0.05, 1e-5, 2e6, float("nan"), None)] == [
        "1.00",
        "12.3",
        "123",
        "0.05",
        "1.00e-05",
        "2.00e+06",
        "",
        "",
    ]
    assert [whole_text(x) for x in (3, 3.0, 1e6, 2.5, float("nan"), None)] == [
        "3",
        "3",
        "1000000",
        "2.50",
        "",
        "",
    ]
    assert times_text(2.1, 2.05, 2.16) == "2.10 times (2.05 to 2.16)"
    assert times_text(2.1, float("nan"), float("nan")) == "2.10 times"
    assert [list_text(items) for items in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_rounding_never_adds_a_digit_and_is_done_once() -> None:
    numbers = (9.996, 99.96, 999.6, 0.996, 0.0996, 999_999.6)
    assert [number_text(x) for x in numbers] == ["10.0", "100", "1000", "1.00", "0.1", "1.00e+06"]
    sizes = (0, 9, 1023, 10_801, 1_048_346, 4 << 30, 3 << 29, 1073571733, None)
    assert [size_text(n) for n in sizes] == [
        "0 B",
        "9 B",
        "1023 B",
        "11 KiB",
        "1 MiB",
        "4 GiB",
        "1.5 GiB",
        "1 GiB",
        "",
    ]


def test_a_share_above_the_whole_is_called_impossible() -> None:
    assert share_text(0.81) == "81.0 %"
    assert share_text(1.0) == "100 %"
    assert share_text(1.004) == "100 %"  # nothing above 100 % is shown
    assert share_text(1.3) == "130 % (impossible)"
    assert share_text(1.3, "from memory alone") == "130 % (impossible from memory alone)"
    assert not beyond_whole(float("nan"))
    assert not beyond_whole(float("inf"))


def test_a_generation_stands_beside_its_kernel() -> None:
    assert kernel_text("flash", "FA4") == "flash (FA4)"
    assert kernel_text("math", None) == "math"
    assert kernel_text(None, None) == ""
