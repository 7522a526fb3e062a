"""Several files as one, for formats that are a folder."""

from collections.abc import Mapping
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo


def zipped(files: Mapping[str, str]) -> bytes:
    """By their paths; the same files give the same bytes."""
    packed = BytesIO()
    with ZipFile(packed, "w") as file:
        for path, text in files.items():
            file.writestr(ZipInfo(path), text, ZIP_DEFLATED)  # ZipInfo: without the time of day
    return packed.getvalue()
