from itertools import product

import pytest

from attnbench.impls._triton.configs import (
    FEW_QUERIES_TABLES,
    FP32,
    KERNELS,
    SMALLEST_BLOCK,
    WARP,
    WARPGROUP,
    WARPGROUP_10,
    Config,
    candidates,
    padded,
)


@pytest.mark.parametrize(
    ("capability", "item_bytes"),
    [((8, 0), 2), ((8, 9), 2), ((9, 0), 2), ((10, 0), 2), ((12, 0), 2), ((9, 0), 4)],
)
def test_every_problem_has_candidates_that_its_gpu_can_run(
    capability: tuple[int, int], item_bytes: int
) -> None:
    widths, lengths = (1, 16, 64, 65, 128, 200, 256), (1, 16, 17, 10**6)
    for width, n_q, causal, kernel in product(widths, lengths, (False, True), KERNELS):
        found = candidates(
            kernel,
            capability=capability,
            item_bytes=item_bytes,
            width=width,
            n_q=n_q,
            causal=causal,
        )
        assert 1 <= len(found) <= 6
        # The first, which is taken without timing, and the smallest must run everywhere.
        assert not found[0].descriptors
        assert not found[-1].descriptors
        for config in found:
            assert config.by_pointers() in found  # for tensors that descriptors do not fit
            assert config.descriptors <= (capability >= (9, 0))
            specializable = kernel == "forward" and capability >= (10, 0) and not causal
            assert config.specialize <= (config.descriptors and specializable)
            if n_q <= 16 and kernel != "grad_kv":
                assert config.block_q == 16


def test_a_width_takes_the_list_of_the_next_larger_one() -> None:
    found = candidates("forward", capability=(9, 0), item_bytes=2, width=65, n_q=99, causal=True)
    assert found == WARPGROUP["forward"][128]


def test_the_kernels_accept_every_configuration() -> None:
    for table in (WARPGROUP_10, WARPGROUP, WARP, FP32, *FEW_QUERIES_TABLES.values()):
        lists = (listed for widths in table.values() for listed in widths.values())
        for config in (config for listed in lists for config in listed):
            for block in (config.block_q, config.block_kv):
                assert block >= SMALLEST_BLOCK
                assert block & (block - 1) == 0
            assert config.warps in (4, 8)


def test_widths_are_padded_to_powers_of_two() -> None:
    assert [padded(width) for width in (1, 16, 17, 64, 96, 129)] == [16, 16, 32, 64, 128, 256]


def test_a_configuration_survives_being_written_as_numbers() -> None:
    config = Config(16, 32, 4, 2, descriptors=True)
    assert config.numbers() == [16, 32, 4, 2, 1, 0]
    assert Config.of([16, 32, 4, 2, 1, 0]) == config
