"""The cache on disk: corrupted entries, limits, directories that can't be written."""

from __future__ import annotations

import os
import threading

import pytest

from tests.lowering.modules import chain
from xformlib.lowering import cache, compiler, targets
from xformlib.lowering.targets import Target

HOST = targets.host_cpu()
LADDER = (("--a",), ("--b",))


def entry(empty_cache):
    (path,) = empty_cache.glob("*/*.vmfb")
    return path


def test_what_is_written_is_read(empty_cache):
    cache.write("ab12", b"artifact")
    assert cache.read("ab12") == b"artifact"
    assert cache.read("ab13") is None
    info = cache.info()
    assert (info.directory, info.entries) == (empty_cache, 1)
    cache.clear()
    assert cache.read("ab12") is None
    assert cache.info().bytes == 0


@pytest.mark.parametrize("damage", ["flip", "shorten", "empty"])
def test_corrupted_entries_are_compiled_again(empty_cache, compiled, damage):
    good = compiler.compile(chain("add"), HOST)
    path = entry(empty_cache)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes({"flip": bytes(data), "shorten": bytes(data[:-7]), "empty": b""}[damage])
    assert compiler.compile(chain("add"), HOST) == good
    assert compiled() == 2
    assert compiler.compile(chain("add"), HOST) == good
    assert compiled() == 2


def test_the_key_depends_on_all_that_the_artifact_does():
    variants = [
        (b"module", HOST, LADDER),
        (b"modulf", HOST, LADDER),
        (b"module", Target(HOST.name, HOST.platform, HOST.flags[:-1], HOST.features), LADDER),
        (b"module", Target(HOST.name, HOST.platform, HOST.flags, "other CPU"), LADDER),
        (b"module", HOST, LADDER[:1]),
        (b"module", HOST, LADDER[::-1]),
    ]
    assert len({cache.key(*v) for v in variants}) == len(variants)


def test_the_entries_used_longest_ago_go_first(empty_cache, monkeypatch):
    monkeypatch.setattr(cache, "_WRITES_BETWEEN_EVICTIONS", 1)
    for i in range(4):
        cache.write(f"k{i}", bytes(100))
        for path in empty_cache.glob(f"*/k{i}*"):
            os.utime(path, (1000 + i, 1000 + i))
    assert cache.read("k0") == bytes(100)  # used just now
    monkeypatch.setenv("XFORMLIB_CACHE_SIZE", "400")
    cache.write("k4", bytes(100))
    kept = {k for k in ("k0", "k1", "k2", "k3", "k4") if cache.read(k) is not None}
    assert kept == {"k0", "k3", "k4"}


def test_size_0_means_no_cache(empty_cache, monkeypatch, compiled):
    cache.write("ab12", b"artifact")
    monkeypatch.setenv("XFORMLIB_CACHE_SIZE", "0")
    assert cache.read("ab12") is None
    compiler.compile(chain("add"), HOST)
    compiler.compile(chain("add"), HOST)
    assert compiled() == 2


def test_a_size_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("XFORMLIB_CACHE_SIZE", "much")
    with pytest.raises(ValueError, match=r"XFORMLIB_CACHE_SIZE.*'much'"):
        cache.limit()


def test_a_directory_that_cannot_be_made_means_no_cache(tmp_path, monkeypatch, compiled):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("XFORMLIB_CACHE_DIR", str(tmp_path / "file" / "cache"))
    compiler.compile(chain("add"), HOST)
    compiler.compile(chain("add"), HOST)
    assert compiled() == 2
    assert cache.info().entries == 0
    cache.clear()


def test_many_writers_of_one_entry(empty_cache):
    contents = [bytes([i]) * 100_000 for i in range(4)]
    seen = set()

    def write(content):
        for _ in range(20):
            cache.write("ab12", content)
            seen.add(cache.read("ab12"))

    threads = [threading.Thread(target=write, args=(c,)) for c in contents]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen <= set(contents)
    assert [p.name for p in empty_cache.glob("*/*")] == ["ab12.vmfb"]
