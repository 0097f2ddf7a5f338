"""The cache of artifacts on disk: content-addressed, checksummed, written atomically, bounded.

An entry is the SHA-256 of the artifact followed by the artifact. One that does not verify is discarded, so a process
killed in the middle of anything leaves a usable cache. A directory that can't be written means no cache, not an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import tempfile
from functools import cache as memoise
from pathlib import Path
from typing import NamedTuple

from xformlib.lowering.targets import Target

__all__ = ["clear", "directory", "info", "key", "read", "write"]

_DIGEST = hashlib.sha256().digest_size
_SUFFIX = ".vmfb"
_DEFAULT_SIZE = 2 << 30
# Looking at every file's age is work: only every so many writes.
_WRITES_BETWEEN_EVICTIONS = 50
_writes = 0


class Info(NamedTuple):
    """Where the cache is and what is in it."""

    directory: Path
    entries: int
    bytes: int
    limit: int


def directory() -> Path:
    """``XFORMLIB_CACHE_DIR``, or ``~/.cache/xformlib``."""
    given = os.environ.get("XFORMLIB_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(given) if given else Path(base) / "xformlib"


def limit() -> int:
    """``XFORMLIB_CACHE_SIZE`` in bytes; 2 GiB by default, 0 for no cache.

    Raises:
        ValueError: the variable is no number.
    """
    text = os.environ.get("XFORMLIB_CACHE_SIZE")
    if text is None:
        return _DEFAULT_SIZE
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"environment variable XFORMLIB_CACHE_SIZE must be a number of bytes; it is {text!r}"
        ) from None


@memoise
def _compiler_version() -> str:
    return importlib.metadata.version("iree-base-compiler")


def key(module: bytes, target: Target, ladder: tuple[tuple[str, ...], ...]) -> str:
    """The name of an artifact: a hash of all that it depends on (``module`` is bytecode without source locations)."""
    rest = [_compiler_version(), target.features, *target.flags, *("\0".join(rung) for rung in ladder)]
    return hashlib.sha256("\n".join(rest).encode() + b"\n" + module).hexdigest()


def _path(key: str) -> Path:
    return directory() / key[:2] / (key + _SUFFIX)


def read(key: str) -> bytes | None:
    """The artifact of a key, or None. A corrupted entry is removed."""
    if limit() == 0:
        return None
    path = _path(key)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, artifact = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(artifact).digest() != digest:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # for eviction by last use
    return artifact


def write(key: str, artifact: bytes) -> None:
    """Store an artifact. The file appears whole or not at all."""
    global _writes
    size = limit()
    if len(artifact) > size:
        return
    path = _path(key)
    temporary = None
    try:
        directory().mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".tmp", delete=False) as f:
            temporary = f.name
            f.write(hashlib.sha256(artifact).digest() + artifact)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return
    if _writes % _WRITES_BETWEEN_EVICTIONS == 0:
        _evict(size)
    _writes += 1


def _entries() -> list[tuple[float, int, Path]]:
    """(time of last use, size, path) of all entries, and of what killed processes left behind."""
    found = []
    for path in directory().glob("*/*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    return sorted(found)


def _evict(size: int) -> None:
    """Remove the entries used longest ago until the rest fits."""
    entries = _entries()
    total = sum(n for _, n, _ in entries)
    for _, n, path in entries:
        if total <= size:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= n


def clear() -> None:
    """Remove all entries."""
    for _, _, path in _entries():
        with contextlib.suppress(OSError):
            path.unlink()


def info() -> Info:
    """Directory, number and size of entries, and the size limit."""
    entries = [e for e in _entries() if e[2].suffix == _SUFFIX]
    return Info(directory(), len(entries), sum(n for _, n, _ in entries), limit())
