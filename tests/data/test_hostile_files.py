"""Files that lie, explode or are no files: a sentence that names what it is, before it costs."""

import gzip
import resource
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import onegrad as og
from onegrad.data.arrays import File
from onegrad.data.formats import read_idx
from onegrad.tabular.reading.reading import read_table


def refusal(use, path):
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(og.SpecError) as error:
        use(path)
    assert time.process_time() - start < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB
    return str(error.value)


def test_an_archive_that_unpacks_to_gigabytes(tmp_path):
    path = tmp_path / "bomb.npz"
    zeros = bytes(10_000_000)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as member:
            header = {"descr": "|u1", "fortran_order": False, "shape": (120, 20_000_000)}
            np.lib.format.write_array_header_1_0(member, header)
            for _ in range(3):  # the directory is made to say the rest
                member.write(zeros)
        with archive.open("y.npy", "w") as member:
            np.lib.format.write_array(member, np.arange(120.0))
    raw = bytearray(path.read_bytes())
    at = raw.find(b"PK\x01\x02")
    raw[at + 24 : at + 28] = struct.pack("<I", 2_400_000_128)
    path.write_bytes(bytes(raw))
    assert "unpacks to 2.4 GB" in refusal(read_table, path)
    assert "unpacks to 2.4 GB" in refusal(lambda p: File(path=p), path)


def test_images_that_unpack_to_gigabytes(tmp_path):
    path = tmp_path / "t-images-idx3-ubyte.gz"
    with gzip.open(path, "wb") as file:
        file.write(struct.pack(">HBBIII", 0, 8, 3, 3_000_000, 32, 32) + bytes(100_000))
    with gzip.open(tmp_path / "t-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">HBBI", 0, 8, 1, 0))
    assert "unpacks to 3.07 GB" in refusal(read_table, path)


def test_images_with_more_behind_them_than_they_say(tmp_path):
    """Only one byte more than declared is ever unpacked."""
    path = tmp_path / "t-images-idx1-ubyte.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(struct.pack(">HBBI", 0, 8, 1, 10))
        for _ in range(20):
            file.write(bytes(20_000_000))
    assert "11 bytes" in refusal(read_idx, path)


def test_no_images(tmp_path):
    path = tmp_path / "t-images-idx3-ubyte"
    path.write_bytes(struct.pack(">HBBIII", 0, 8, 3, 0, 28, 28))
    (tmp_path / "t-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 0))
    assert "has 0 images" in refusal(read_table, path)


@pytest.mark.parametrize("kind", ["encrypted", "lying", "objects", "missing", "not zip", "npy"])
def test_archives_that_cannot_be_used(tmp_path, kind):
    path = tmp_path / "table.npz"
    x, y = np.ones((70, 3)), np.arange(70)
    np.savez(path, x=x, **({} if kind == "missing" else {"y": y}))
    raw = bytearray(path.read_bytes())
    if kind == "encrypted":
        for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
            raw[raw.find(mark) + offset] |= 1
    if kind == "lying":
        at = raw.find(b"'shape': (70, 3)")
        raw[at : at + 16] = b"'shape': (99, 3)"
    path.write_bytes(bytes(raw) if kind != "not zip" else b"nonsense")
    if kind == "objects":
        np.savez(path, x=np.array([{}] * 70, dtype=object), y=y)
    if kind == "npy":
        with path.open("wb") as file:
            np.save(file, x)
    said = {
        "encrypted": "is encrypted", "lying": "NPZ archive", "missing": "no array y",
        "objects": "Object arrays", "not zip": "NPZ archive", "npy": "NPZ archive",
    }  # fmt: skip
    for use in (read_table, lambda p: File(path=p)):
        assert said[kind] in refusal(use, path)


def test_two_columns_of_one_name_among_many(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"c{i}" for i in range(5_000)]
    path.write_text(",".join([*names, "c7"]) + "\n")
    assert "names two columns" in refusal(read_table, path)
    path.write_text(",".join([*names, *(f"d{i}" for i in range(16_000))]) + "\n")
    assert "at most 20000 columns" in refusal(read_table, path)


def test_two_parquet_columns_of_one_name(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "twice.parquet"
    columns = [pa.array(range(70))] * 3
    parquet.write_table(pa.Table.from_arrays(columns, names=["a", "a", "y"]), path)
    assert "names two columns" in refusal(read_table, path)


@pytest.mark.parametrize("kind", ["directory", "ordinary"])
def test_what_is_no_file_is_named(tmp_path, kind):
    path = tmp_path / "table.csv"
    if kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(Path("/dev/zero"))
    for use in (read_table, lambda p: File(path=p)):
        assert kind in refusal(use, path)
    with pytest.raises(og.SpecError):
        og.Problem.from_spec({"data": {"model": "file", "path": str(path)}})


def test_half_precision_does_not_overflow(tmp_path):
    rng = np.random.default_rng(0)
    x = 200 * rng.standard_normal((90, 30))
    y = np.sign(x[:, 0])
    half, whole = tmp_path / "half.npz", tmp_path / "whole.npz"
    np.savez(half, x=x.astype(np.float16), y=y)
    np.savez(whole, x=x.astype(np.float16).astype(float), y=y)
    data = [File(path=path) for path in (half, whole)]
    assert data[0].variance == data[1].variance > 30 * 30_000
    spec = {"network": {"width": 20}, "training": {"samples": 30, "rate": 1.0}}
    errors = [
        og.simulate(og.Problem(data=one, labels={"model": "given"}, **spec), seeds=2).test_error
        for one in data
    ]
    assert errors[0] == errors[1] and errors[0].mean != 1.0


@pytest.mark.parametrize("scale", [1e200, 0.0])
def test_scales_that_are_no_numbers_are_refused(scale):
    x = scale * np.random.default_rng(0).standard_normal((90, 5))
    with pytest.raises(og.SpecError, match="mean trace"):
        og.Problem(
            data={"model": "arrays", "x": x, "y": np.ones(90)},
            network={"width": 5}, training={"samples": 20, "rate": 1.0},
        )  # fmt: skip


@pytest.mark.parametrize("line", [0, 1, 60])
def test_a_quote_that_is_not_closed_is_refused_with_its_lines(tmp_path, line):
    """Before, 121 lines became 60 rows without a word."""
    lines = ["x1,x2,y", *(f"{i},{i + 1},{i % 2}" for i in range(120))]
    lines[line] = lines[line].replace(",", ',"', 1)
    lines[-1] += '"'
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = refusal(lambda p: File(path=p), path)
    assert f"in line {line + 1} " in said and "would become one row" in said


def test_a_quoted_table_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('"x1","y"\r\n"1","2"\r\n\r\n"3","4"\r\n', encoding="utf-8-sig")
    x, y = File(path=path, label="x1").loaded
    assert x.tolist() == [[2], [4]] and y.tolist() == [1, 3]
