"""What is inside the files: tables and draws, read only after their headers agree with what they should hold."""

import io
import math
import tokenize
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisewise.errors import ReleaseError


def read_table(content: bytes, name: str, rows: int) -> pa.Table:
    """Read a Parquet file that must hold so many rows; checked before anything is unpacked."""
    try:
        if pq.read_metadata(pa.BufferReader(content)).num_rows != rows:
            raise ReleaseError(f"{name} does not hold the {rows:,} rows it should. Get a fresh copy.")
        return pq.read_table(pa.BufferReader(content))
    except (OSError, ValueError, pa.ArrowException):
        raise ReleaseError(f"{name} is not readable: truncated or edited. Get a fresh copy.") from None


# What a damaged zip archive or array header makes zipfile and NumPy raise.
_DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    OverflowError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)


def read_theta(content: bytes, parameters: int) -> np.ndarray:
    """Read the draws; what the headers claim is checked against the file's true size before anything is allocated."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open("theta.npy") as member:
            entry = archive.getinfo("theta.npy")
            np.lib.format.read_magic(member)
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
            plain = entry.compress_type == zipfile.ZIP_STORED and dtype == np.float64 and not fortran
            if not plain or len(shape) != 3 or shape[2] != parameters or min(shape) < 1:
                raise ValueError("not an array of draws")
            values = math.prod(shape) * 8
            if values > len(content) or not 0 <= entry.file_size - values < 4096:
                raise ValueError("the sizes contradict each other")
            return np.frombuffer(member.read(values), np.float64).reshape(shape)
    except _DAMAGED:
        raise ReleaseError(
            "posterior.npz is not a posterior of this model: truncated or edited. Get a fresh copy."
        ) from None


def npz(arrays: dict[str, np.ndarray]) -> bytes:
    """An .npz whose bytes depend on the arrays alone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in sorted(arrays.items()):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0)), member.getvalue())
    return buffer.getvalue()
