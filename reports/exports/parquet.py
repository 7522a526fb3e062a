"""Apache Parquet, for pandas, DuckDB and others: the table with types, samples as nested lists."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from ...harness.rows.model import SAMPLES
from ..data.columns import COLUMNS, COUNT, NUMBER, TEXT, YES_NO
from ..data.load import rows_of
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

    types = {TEXT: pa.string(), COUNT: pa.int64(), NUMBER: pa.float64(), YES_NO: pa.bool_()}
    columns, rows = tidy(runs)
    arrays = {
        name: pa.array(
            [_encodable(row[name]) for row in rows],
            types[COLUMNS[name].dtype] if name in COLUMNS else None,  # a probe's: by its values
        )
        for name in columns
    }
    samples = pa.list_(pa.list_(pa.list_(pa.float64())))
    every = rows_of(runs)
    arrays |= {name: pa.array([row[name] for row in every], samples) for name in SAMPLES}
    facts = {
        name: {key: meta.get(key) for key in ("schema", "started_utc", "scenario", "environment")}
        for name, meta in run_meta(runs).items()
    }
    written = pa.table(arrays).replace_schema_metadata({METADATA: json.dumps(facts).encode()})
    file = BytesIO()
    pyarrow.parquet.write_table(written, file)
    return Exported(content=file.getvalue())


def _encodable(value: Any) -> Any:
    """Half a surrogate pair, which JSON may contain and UTF-8 may not, is spelled out."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
