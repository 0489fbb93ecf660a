"""Reading somebody's table: what is mended is told, what cannot be used is refused with advice."""

import gzip
import struct

import numpy as np
import pytest

from onegrad.data.reading import read_table
from onegrad.errors import SpecError


def csv_file(tmp_path, lines, name="data.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_gaps_texts_and_constants(tmp_path, rng):
    lines = ["id,a,b,colour,const,empty,story,target"]
    for i in range(100):
        a = "" if i % 10 == 0 else f"{rng.normal():.6f}"
        b = "NA" if i == 3 else f"{i * i}"
        colour = ["red", "green", "blue"][i % 3]
        label = "" if i == 5 else f"{i * 0.37}"
        lines.append(f"{i},{a},{b},{colour},7,{'' if i else 1},word{i},{label}")
    table = read_table(csv_file(tmp_path, lines))
    assert table.names == ("a", "b", "colour = green", "colour = red")
    assert table.x.shape == (99, 4) and np.isfinite(table.x).all()
    assert table.task == "regression" and table.label == "target"
    text = " ".join(table.notes)
    for told in (
        "1 row without a label",
        "constant: const",
        "more than half empty: empty",
        "free text with more than 20 values: story",
        "only counts the rows: id",
        "11 gaps filled with the column's median",
    ):
        assert told in text
    column = [float(line.split(",")[1]) for line in lines[1:] if line.split(",")[1]]
    assert table.x[0, 0] == pytest.approx(np.median(np.delete(column, 4)))  # row 5 has no label


def test_a_gap_among_texts_is_a_value_of_its_own(tmp_path):
    cities = ["Paris", "Rome", ""]
    lines = ["city,y"] + [f"{cities[i % 3]},{i}.5" for i in range(90)]
    table = read_table(csv_file(tmp_path, lines))
    assert table.names == ("city = Paris", "city = Rome")
    assert table.x[:3].tolist() == [[1, 0], [0, 1], [0, 0]]
    assert any("30 gaps in columns of texts" in note for note in table.notes)


def test_classes_largest_first(tmp_path, rng):
    lines = ["x;y;kind"] + [
        f"{rng.normal()};{rng.normal()};{'cat' if i % 3 else 'dog'}" for i in range(90)
    ]
    table = read_table(csv_file(tmp_path, lines))
    assert table.task == "classification" and table.classes == ("cat", "dog")
    named = read_table(csv_file(tmp_path, lines), label="x")
    assert named.task == "regression" and named.names == ("y", "kind = dog")


def test_no_header(tmp_path, rng):
    lines = [f"{rng.normal()},{rng.normal()},{i % 2}" for i in range(80)]
    table = read_table(csv_file(tmp_path, lines))
    assert len(table.y) == 80 and table.names == ("column 1", "column 2")
    assert "no header" in table.notes[0] and set(table.classes) == {"0", "1"}


def test_long_file_is_sampled(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("onegrad.data.reading._MOST_ROWS", 500)
    lines = ["a,b,y"] + [f"{rng.normal()},{rng.normal()},{i}.5" for i in range(5000)]
    table = read_table(csv_file(tmp_path, lines))
    assert len(table.y) == 500 and "Of 5,000 rows 500" in table.notes[0]
    assert abs(table.y.mean() - 2500) < 4 * 1443 / np.sqrt(500)  # every part of the file counts
    again = read_table(csv_file(tmp_path, lines))
    np.testing.assert_array_equal(table.y, again.y)


def test_npz_and_parquet_agree(tmp_path, rng):
    x, y = rng.standard_normal((70, 3)), rng.standard_normal(70)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    table = read_table(tmp_path / "a.npz")
    np.testing.assert_array_equal(table.x, x)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(x, columns=["u", "v", "w"]).assign(y=y)
    frame.to_parquet(tmp_path / "a.parquet")
    other = read_table(tmp_path / "a.parquet")
    np.testing.assert_array_equal(other.x, x)
    np.testing.assert_array_equal(other.y, y)
    assert other.names == ("u", "v", "w")


def test_idx(tmp_path, rng):
    images = rng.integers(0, 256, (80, 4, 4), dtype=np.uint8)
    labels = np.arange(80, dtype=np.uint8) % 3
    for name, array in (("t-images-idx3-ubyte.gz", images), ("t-labels-idx1-ubyte.gz", labels)):
        head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        (tmp_path / name).write_bytes(gzip.compress(head + array.tobytes()))
    table = read_table(tmp_path / "t-images-idx3-ubyte.gz")
    np.testing.assert_array_equal(table.x, images.reshape(80, -1))
    assert sorted(table.classes) == ["0", "1", "2"]
    (tmp_path / "t-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(SpecError, match="needs its labels in t-labels"):
        read_table(tmp_path / "t-images-idx3-ubyte.gz")


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "evil.npz", x=np.array([[object()]]), y=np.array([object()]))
    with pytest.raises(SpecError, match=r"number arrays x and y"):
        read_table(tmp_path / "evil.npz")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a,y"] + ["1.5,3"] * 70, "single value"),
        (["a,y"] + [f"2,{i}.5" for i in range(70)], "no input column is left"),
        (["a,y"] + [f"{i % 7},{i}.5" for i in range(20)], "at least 60 rows"),
        (["a,y"], "0 rows"),
        (["a,y"] + [f"{i % 7},{i}.5" for i in range(70)] + ["1,2,3"], "line 72 has 3 cells"),
        (["a,a,y"] + [f"{i % 7},{i},1" for i in range(70)], "names two columns"),
        (["a"] + [str(i) for i in range(70)], "at least one input column"),
        (["a,y"] + [f"{i % 7},word{i}" for i in range(70)], "70 classes"),
        ([""], "at least one input column"),
    ],
)
def test_refusals(tmp_path, lines, said):
    with pytest.raises(SpecError, match=said):
        read_table(csv_file(tmp_path, lines))


def test_names_are_suggested(tmp_path, rng):
    path = csv_file(tmp_path, ["a,target"] + [f"{i % 7},{i}.5" for i in range(70)])
    with pytest.raises(SpecError, match='Did you mean "target"'):
        read_table(path, label="tarket")
    with pytest.raises(SpecError, match=r'Did you mean "data.csv"'):
        read_table(tmp_path / "dta.csv")
    with pytest.raises(SpecError, match=r"must be \.csv"):
        read_table(csv_file(tmp_path, ["x"], "data.xlsx"))
    (tmp_path / "bad.parquet").write_bytes(b"nonsense")
    with pytest.raises(SpecError, match="cannot be read as Parquet"):
        read_table(tmp_path / "bad.parquet")
