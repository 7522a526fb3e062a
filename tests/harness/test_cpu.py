"""The processor's name and caches."""

from attnbench.harness.cpu import cpu_cache_bytes, cpu_name


def test_this_machine_has_a_name_for_its_processor():
    assert cpu_name()


def cache(root, core, index, level, kind, size, cores):
    """A cache as the kernel describes it."""
    folder = root / f"cpu{core}/cache/index{index}"
    folder.mkdir(parents=True)
    facts = {"level": level, "type": kind, "size": size, "shared_cpu_list": cores}
    for name, value in facts.items():
        (folder / name).write_text(f"{value}\n")


def test_the_last_caches_of_these_cores_are_counted_once(tmp_path):
    for core in range(4):
        cache(tmp_path, core, 0, 1, "Data", "32K", core)
        cache(tmp_path, core, 1, 4, "Instruction", "99K", core)
        cache(tmp_path, core, 2, 3, "Unified", "32768K", "0-1" if core < 2 else "2-3")
    assert cpu_cache_bytes([0, 1], tmp_path) == 32 << 20
    assert cpu_cache_bytes([0, 3], tmp_path) == 64 << 20
    assert cpu_cache_bytes([0, 4], tmp_path) is None
    assert cpu_cache_bytes([], tmp_path) is None


def test_a_cache_that_the_kernel_describes_oddly_is_unknown(tmp_path):
    cache(tmp_path, 0, 0, "three", "Unified", "32M", "0")
    assert cpu_cache_bytes([0], tmp_path) is None
