"""Apache Parquet, for pandas, DuckDB and others: the table with types, samples as nested lists."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from ...harness.rows.model import SAMPLES
from ..data.load import frame
from ..data.read import Run
from ..data.run_meta import run_meta
from . import Exported, PackageMissing
from ._tidy import tidy

MEANING = "a typed table with raw samples; needs pyarrow"
METADATA = b"attnbench"


def export(runs: Sequence[Run]) -> Exported:
    """The file's metadata has a key `attnbench` with parts of each run.json."""
    if find_spec("pyarrow") is None:
        raise PackageMissing(
            "parquet needs pyarrow, which is not installed: pip install 'attnbench[parquet]'"
        )
    import pyarrow as pa
    import pyarrow.parquet

    table = tidy(runs)
    arrays = {
        name: pa.array(map(_encodable, table[name].tolist()), _type(str(table[name].dtype)))
        for name in map(str, table.columns)
    }
    samples = pa.list_(pa.list_(pa.list_(pa.float64())))
    arrays |= {
        str(name): pa.array(column.tolist(), samples)
        for name, column in frame(runs)[list(SAMPLES)].items()
    }
    facts = {
        name: {key: meta.get(key) for key in ("schema", "started_utc", "scenario", "environment")}
        for name, meta in run_meta(runs).items()
    }
    written = pa.table(arrays).replace_schema_metadata({METADATA: json.dumps(facts).encode()})
    file = BytesIO()
    pyarrow.parquet.write_table(written, file)
    return Exported(content=file.getvalue())


def _type(kind: str) -> Any:
    """The Arrow type of a column; None (by its values) for columns of probes."""
    import pyarrow as pa

    return {
        "string": pa.string(),
        "Int64": pa.int64(),
        "float64": pa.float64(),
        "boolean": pa.bool_(),
    }.get(kind)


def _encodable(value: Any) -> Any:
    """None if missing. Escapes half a surrogate pair, which JSON may contain and UTF-8 may not."""
    import pandas as pd

    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return None if value is pd.NA or value != value else value
