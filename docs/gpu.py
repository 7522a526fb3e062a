"""Write docs/gpu.md and its pictures anew: `make pictures`, or `gpu.py RUN` with a run folder of
`attnbench kernels audit`, whose kernel then is the example.

One shape, worked through with the functions by which attnbench itself counts, and with what the
audit read in the kernel's machine code (gpu.json). None of it needs a GPU.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from attnbench.harness.audit.occupancy import (
    ARCHITECTURES,
    MOST_THREAD_REGISTER_COUNT,
    PARTITION_COUNT,
    RESERVED_SHARED_BYTES,
    SM_REGISTER_COUNT,
    WARP_SIZE,
    Block,
    occupancy,
)
from attnbench.harness.audit.sass import EXP_CYCLES
from attnbench.harness.audit.tensor_bound import LIMITS, most_busy
from attnbench.harness.cases.costs import minimal_bytes, work_exps, work_flops
from attnbench.harness.measure.physical_floor import specified
from attnbench.impls._triton.configs import Config, candidates, padded
from attnbench.impls.problem import Problem
from attnbench.reports.drawing import bars
from attnbench.reports.drawing.marks import rect, svg, text, text_width
from attnbench.reports.elements import Bar, Bars, Table

DOCS = Path(__file__).parent
ROW = DOCS / "gpu.json"
PAGE = "gpu.md"
SHAPE = Problem(
    batch=4,
    seq_len=4096,
    d_model=1024,
    heads=16,
    dtype="bf16",
    causal=True,
    causal_align="top_left",
)
EXAMPLE = Config(128, 64, 8, 3, descriptors=True)  # not the fastest: the plainest to draw
CAPABILITY, GPU = (9, 0), "NVIDIA H100 80GB HBM3"
CSS = DOCS.parent / "reports" / "pages" / "pictures.css"
MARGIN = 14.0  # around a picture, whose texts may stand out a little
LAUNCH = DOCS.parent / "impls" / "_triton" / "launch.py"  # importing it takes triton


def example(folder: Path) -> dict[str, Any]:
    """The audit's row of EXAMPLE."""
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    return next(row for row in rows if is_example(row))


def is_example(row: dict[str, Any]) -> bool:
    """Whether a row is of EXAMPLE, which must be listed for SHAPE on this GPU."""
    listed = candidates(
        "forward", capability=CAPABILITY, item_bytes=SHAPE.item_bytes, width=SHAPE.d_k,
        n_q=SHAPE.seq_len, causal=True, triton=row.get("triton"),
    )  # fmt: skip
    kind = {name: row.get(name) for name in ("compute_capability", "kernel", "dtype", "d_k")}
    wanted = {"compute_capability": "9.0", "kernel": "forward", "dtype": "bf16", "d_k": 64}
    plain = row.get("causal") and not row.get("masked") and row.get("status") == "ok"
    is_it = Config(**row["config"]) == EXAMPLE and EXAMPLE in listed
    return bool(kind == wanted and plain and is_it)


def facts(row: dict[str, Any]) -> dict[str, Any]:
    """Every number of the page by its name in the text."""
    p, config, sm = SHAPE, Config(**row["config"]), ARCHITECTURES[CAPABILITY]
    warps, registers = row["block_warp_count"], row["thread_register_count"]
    shared = row["block_shared_bytes"]
    block = Block(warp_count=warps, thread_register_count=registers, shared_bytes=shared)
    fits = occupancy(block, sm)
    busy, limit = most_busy(row, warps, fits.sm_block_count, config.warps)
    sms = int(re.findall(r"^HOPPER_SM_COUNT = (\d+)", LAUNCH.read_text(), re.MULTILINE)[0])
    tiles, threads = -(-p.seq_len // config.block_q), warps * WARP_SIZE
    programs, wave = tiles * p.batch * p.heads, sms * fits.sm_block_count
    # as key_range of impls/_triton/kernels: whole tiles of keys, then those on the diagonal
    per_tile = config.block_q // config.block_kv
    keys = [(tile + 1) * per_tile for tile in range(tiles)]
    scores = sum(keys) * config.block_q * config.block_kv
    pairs = p.seq_len * (p.seq_len + 1) // 2
    rates = specified(GPU)
    flops, read = work_flops(p), minimal_bytes(p)
    ridge = rates["gemm_bf16_flops_per_s"] / rates["copy_bytes_per_s"]
    matrix = p.batch * p.heads * p.seq_len**2 * p.item_bytes
    tile_bytes = config.block_kv * (p.d_k + p.d_v) * p.item_bytes
    loaded = p.batch * p.heads * sum(keys) * tile_bytes
    decode = Problem(
        batch=4, seq_len=1, kv_seq_len=4096, d_model=1024, heads=16, dtype="bf16", causal=True,
        causal_align="bottom_right",
    )  # fmt: skip
    accumulator = config.block_q * padded(p.d_v)
    shortest_s = flops / rates["gemm_bf16_flops_per_s"]
    return {
        "batch": p.batch, "heads": p.heads, "n": p.seq_len, "d": p.d_k, "gpu": GPU, "sms": sms,
        "entries": p.batch * p.heads, "config": f"{config.block_q} x {config.block_kv}",
        "block_q": config.block_q, "block_kv": config.block_kv, "stages": config.stages,
        "tiles": tiles, "programs": programs, "warps": warps, "warp": WARP_SIZE, "threads": threads,
        "fewest": min(keys), "most": max(keys), "edge": per_tile, "discarded": scores / pairs - 1,
        "registers": registers, "most_registers": MOST_THREAD_REGISTER_COUNT - 1,
        "sm_registers": SM_REGISTER_COUNT, "block_registers": fits.allocated_register_count,
        "accumulator": accumulator, "accumulator_each": accumulator // threads,
        "score_each": config.block_q * config.block_kv // threads,
        "shared_kib": shared / 1024, "q_kib": config.block_q * p.d_k * p.item_bytes / 1024,
        "kv_kib": tile_bytes / 1024, "staged_kib": config.stages * tile_bytes / 1024,
        "allocated_kib": fits.allocated_shared_bytes / 1024, "sm_kib": sm.shared_kib,
        "reserved_kib": RESERVED_SHARED_BYTES // 1024,
        "barriers_kib": (shared - config.block_q * p.d_k * 2 - config.stages * tile_bytes) / 1024,
        "by_registers": fits.block_limits["registers"], "sm_blocks": fits.sm_block_count,
        "by_shared": fits.block_limits["shared_memory"], "by_warps": fits.block_limits["warps"],
        "limited": " and ".join(fits.limited_by).replace("_", " "), "sm_warps": fits.sm_warp_count,
        "most_warps": sm.most_warp_count, "occupancy": fits.occupancy_ratio,
        "schedulers": PARTITION_COUNT, "each": fits.sm_warp_count // PARTITION_COUNT,
        "tensor": row["loop_tensor_cycles"], "exp": row["loop_exponential_cycles"],
        "issue": row["loop_issue_cycles"], "exp_cycles": EXP_CYCLES, "busy": busy,
        "busy_limit": LIMITS[limit], "flops": flops / 1e9, "exps": work_exps(p) / 1e9,
        "bytes": read / 2**20, "intensity": flops / read, "ridge": ridge,
        "peak": rates["gemm_bf16_flops_per_s"] / 1e12,
        "bandwidth": rates["copy_bytes_per_s"] / 1e12,
        "matrix": matrix / 2**30, "written": flops / (4 * matrix),
        "loaded": loaded / 2**20, "reuse": loaded / read, "tiled": flops / loaded,
        "decode": work_flops(decode) / minimal_bytes(decode),
        "wave": wave, "full": programs // wave,
        "left": programs % wave, "empty": wave - programs % wave,
        "waves": programs / wave, "shortest": shortest_s * 1e6,
        "bound": shortest_s / busy * (scores / pairs) * 1e6, "triton": row["triton"],
        "ptxas": row["ptxas"],
    }  # fmt: skip


# ---- pictures ------------------------------------------------------------------------------------


def standing(drawing: str) -> str:
    """A drawing of the page as a file of its own, light or dark as the reader's system is."""
    found = re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawing)[0]
    width, height = (float(size) + 2 * MARGIN for size in found)
    sizes = f'width="{width:g}" height="{height:g}"'
    box = f'viewBox="{-MARGIN:g} {-MARGIN:g} {width:g} {height:g}"'
    rules = CSS.read_text(encoding="utf-8").partition("/* Which version")[0]
    ground = f'<rect class="ground" x="{-MARGIN:g}" y="{-MARGIN:g}" {sizes}/>'
    inside = f"<style>{rules}.ground {{ fill: var(--p-card); }}</style>{ground}"
    head = '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"'
    opened, _, rest = drawing.partition(">")
    opened = re.sub(r'viewBox="[^"]*"', f"{box} {sizes}", opened).replace("<svg", head, 1)
    return f"{opened}>{inside}{rest}\n"


def tiles_picture(found: dict[str, Any]) -> str:
    """The score matrix of one head: a line for each program, a cell for each tile of keys."""
    cell, top = 5.5, 44.0
    line = cell * found["block_q"] / found["block_kv"]
    columns = found["n"] // found["block_kv"]
    wide, high = columns * cell, found["tiles"] * line
    parts = [text(0, 18, f"One head: {found['tiles']} programs, a line each", "pt")]
    parts.append(text(0, 36, f"keys, in {columns} tiles of {found['block_kv']} →", "tk"))
    for tile in range(found["tiles"]):
        end = (tile + 1) * found["edge"]
        for place in range(end):
            look = "f-1" if place >= end - found["edge"] else "f-0"
            parts.append(rect(place * cell, top + tile * line, cell - 1, line - 1, look))
    parts.append(rect(0, top, wide, high, "frame"))
    legend = [("f-0", "computed"), ("f-1", "then masked"), ("", "never loaded")]
    x, y = 0.0, top + high + 14
    for look, words in legend:
        parts.append(rect(x, y, 11, 11, look or "frame"))
        parts.append(text(x + 17, y + 10, words, "tk"))
        x += 31 + text_width(words, 13)
    said = "Tiles of the score matrix: those below the diagonal are computed, those above are not"
    return svg(wide, top + high + 40, "wide", said, "".join(parts))


def sm_picture(found: dict[str, Any]) -> str:
    """What two blocks take of an SM, and how the grid goes through all of them."""
    blocks = found["sm_blocks"]

    def bar(name: str, one: float, whole: float, unit: str, fits: int) -> Bar:
        shares = (one / whole,) * blocks
        note = f"{blocks} x {one:,.0f} of {whole:,.0f}{unit}: room for {fits}"
        return Bar(label=name, shares=shares, note=note, full=fits == blocks)

    waves = (found["wave"] / found["programs"],) * found["full"]
    drawing = Bars(
        title="",
        caption="",
        description=f"{found['limited']}: room for {blocks} blocks on an SM",
        groups=(
            (
                f"One SM holds {blocks} blocks",
                (
                    bar("registers", found["block_registers"], found["sm_registers"], "",
                        found["by_registers"]),
                    bar("shared memory", found["allocated_kib"], found["sm_kib"], " KiB",
                        found["by_shared"]),
                    bar("warps", found["warps"], found["most_warps"], "", found["by_warps"]),
                ),
            ),
            (
                f"The grid on {found['sms']} SMs",
                (
                    Bar(
                        label="programs",
                        shares=(*waves, found["left"] / found["programs"]),
                        note=f"{found['full']} waves of {found['wave']}, then {found['left']}",
                    ),
                ),
            ),
        ),
        table=Table(title="", columns=(), rows=()),
    )  # fmt: skip
    return bars.draw(drawing, "narrow")


# ---- the page ------------------------------------------------------------------------------------


def page(row: dict[str, Any]) -> dict[str, str]:
    """The text of each file."""
    found = facts(row)
    template = (DOCS / "gpu_template.txt").read_text(encoding="utf-8")
    return {
        PAGE: template.format(**found),
        "gpu-tiles.svg": standing(tiles_picture(found)),
        "gpu-sm.svg": standing(sm_picture(found)),
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ROW.write_text(json.dumps(example(Path(sys.argv[1])), indent=2) + "\n", encoding="utf-8")
    for name, content in page(json.loads(ROW.read_text())).items():
        (DOCS / name).write_text(content, encoding="utf-8")
        sys.stdout.write(f"{DOCS / name}\n")
