"""Apache Parquet, for pandas, DuckDB and others: the frame of `attnbench.load`."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from ...harness.rows.model import SAMPLES
from ..data.columns import NESTED, TEXT
from ..data.load import frame_of
from ..data.run_meta import Run, run_meta
from . import Exported, PackageMissing

MEANING = "a typed table with raw samples; needs pyarrow"
METADATA = b"attnbench"


def export(runs: Sequence[Run]) -> Exported:
    """Samples are nested lists, other nested values JSON. The file's metadata has a key `attnbench`
    with parts of each run.json.
    """
    if find_spec("pyarrow") is None:
        raise PackageMissing(
            "parquet needs pyarrow, which is not installed: pip install 'attnbench[parquet]'"
        )
    import pyarrow as pa
    import pyarrow.parquet

    frame = frame_of(runs, several=len(runs) > 1)
    kinds = frame.dtypes.drop([*SAMPLES])
    texts = [name for name, dtype in kinds.items() if dtype in (TEXT, NESTED)]
    for name in texts:
        frame[name] = frame[name].map(_text)
    frame = frame.astype(dict.fromkeys(texts, TEXT))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    samples = dict.fromkeys(SAMPLES, pa.list_(pa.list_(pa.list_(pa.float64()))))
    facts = {
        name: {key: meta.get(key) for key in ("schema", "started_utc", "scenario", "environment")}
        for name, meta in run_meta(runs).items()
    }
    schema = pa.schema(
        [pa.field(one.name, samples.get(one.name, one.type)) for one in table.schema],
        metadata={**table.schema.metadata, METADATA: json.dumps(facts).encode()},
    )
    file = BytesIO()
    pyarrow.parquet.write_table(table.cast(schema), file)
    return Exported(content=file.getvalue())


def _text(value: Any) -> Any:
    """JSON of what is nested. Half a surrogate pair, which JSON may contain and UTF-8 may not, is
    spelled out.
    """
    if isinstance(value, list | dict):
        return json.dumps(value)
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
