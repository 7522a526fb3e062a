"""Our file of a table again, from its original: `python -m attnbench.harness.published.original
ORIGINAL.csv results/published/NAME.csv`.

The header of ours stays. It says whose rows are taken (`methods`), of which device, and has the
SHA-256 of the original's bytes; without one, it gets it. An original is a results file of
NVIDIA/cudnn-frontend.
"""

import csv
import io
import sys
from hashlib import sha256
from pathlib import Path

from ..files.errors import BadInput
from ..files.safe_files import write_output
from .tables import form_of, header

KEPT = {
    "row", "backend", "data_type", "attn_mask", "batch_size", "q_tokens", "q_seqlen", "kv_seqlen",
    "kv_len", "num_q_heads", "num_kv_heads", "head_dim", "head_dim_qk", "head_dim_vo", "is_causal",
    "profile_pass", "time_ms", "tflops", "gbps", "sol_pct", "forward_time", "backward_time",
    "fwd_tflops_per_sec", "bwd_tflops_per_sec",
}  # fmt: skip


def again(original: bytes, ours: str) -> str:
    """Ours, with the rows that the original has. Raises BadInput.

    A line of the original that has no time and names no method of ours is left out as the reader
    leaves it out; a rate printed as `619.000` is written `619`.
    """
    about = header(ours.splitlines())
    digest = sha256(original).hexdigest()
    if about.setdefault("sha256", digest) != digest:
        raise BadInput(f"another text than ours is from: its SHA-256 is {digest}; wanted that one")
    if "methods" not in about:
        raise BadInput("no line `# methods: ` in the header of ours; write whose rows to take")
    methods = about["methods"].split(", ")
    table = csv.DictReader(io.StringIO(original.decode()))
    form = form_of(table.fieldnames or ())
    if form is None:
        raise BadInput("no results file that is known")
    columns = ["row", *(name for name in table.fieldnames or () if name in KEPT - {"row"})]
    rows = []
    for number, row in enumerate(table, 2):
        if row.get("gpu_name", about["device"]) != about["device"]:
            raise BadInput(f"row {number} is of {row['gpu_name']}; wanted {about['device']}")
        cells = form({**row, "row": str(number)}, about) if row["backend"] in methods else []
        if any(one.reason for one in cells) and "error_message" in row:
            raise BadInput(f"row {number} failed, which the columns of ours cannot say; mend KEPT")
        if cells:
            rows.append([str(number), *(row[name].removesuffix(".000") for name in columns[1:])])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return "".join(f"# {key}: {value}\n" for key, value in about.items()) + text.getvalue()


def main(original: str, ours: str) -> None:
    path = Path(ours)
    write_output(path, again(Path(original).read_bytes(), path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (BadInput, OSError, TypeError) as error:
        print(f"{error}; wanted ORIGINAL.csv OURS.csv", file=sys.stderr)  # noqa: T201
        sys.exit(2)
