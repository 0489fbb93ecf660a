"""Reading somebody's table: what is mended is told, what cannot be used is refused with advice."""

import gzip
import struct

import numpy as np
import pytest

from onegrad.errors import SpecError
from onegrad.tabular.reading.parts import in_time
from onegrad.tabular.reading.reading import read_table


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
        "free text, most values of which occur once or twice: story",
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
    monkeypatch.setattr("onegrad.tabular.reading.reading._MOST_ROWS", 500)
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
        (["y,a,y"] + [f"{i % 7},{i},1" for i in range(70)], "names two columns"),
        (["a,y"] + [f"{i}.5{'x' * (i % 2)},{i % 3}" for i in range(70)], "a: free text"),
        (["a"] + [str(i) for i in range(70)], "at least one input column"),
        (["a,y"] + [f"{i % 7},word{i}" for i in range(70)], "70 classes"),
        ([""], "at least one input column"),
    ],
)
def test_refusals(tmp_path, lines, said):
    with pytest.raises(SpecError, match=said):
        read_table(csv_file(tmp_path, lines))


def test_a_decimal_comma(tmp_path, rng):
    """As a German table has it; a comma before three digits is one too where others show it."""
    a = [0.125, 1234.5, -12.25, *np.round(1000 * rng.standard_normal(77), 3)]
    shown = [f"{v:,.3f}".translate(str.maketrans(",.", ".,")) for v in a]
    lines = ["betrag;y"] + [f"{text};{i % 4}" for i, text in enumerate(shown)]
    table = read_table(csv_file(tmp_path, lines))
    np.testing.assert_allclose(table.x[:, 0], a)
    assert any("decimal comma: betrag" in note for note in table.notes)


@pytest.mark.parametrize(
    ("cells", "values", "note"),
    [
        (["1,234", "12,000,500"], [1234, 12_000_500], "amounts"),
        (["0,125", "1,500"], [0.125, 1.5], "decimal comma"),
        (["$1,250.50", "($3.00)"], [1250.5, -3], "amounts"),
        (["12.5 EUR", "-7 EUR"], [12.5, -7], "amounts"),
        (["1.5k", "2M"], [1500, 2e6], "amounts"),
        (["12%", "7.5 %"], [12, 7.5], "amounts"),
        (["−1.5", "2"], [-1.5, 2], ""),
        (["01/31/2020", "02/01/2020"], [18_292, 18_293], "month/day/year"),
        (["31.01.2020 12:00", "01.02.2020 00:00"], [18_292.5, 18_293], "day.month.year"),
        (["2020-01-31T12:00:00Z", "2020-02-01"], [18_292.5, 18_293], "dates"),
    ],
)
def test_texts_that_mean_numbers(tmp_path, cells, values, note):
    lines = ["a;y"] + [f"{cells[i % 2]};{i % 3}" for i in range(80)]
    table = read_table(csv_file(tmp_path, lines))
    np.testing.assert_allclose(table.x[:2, 0], values)
    assert table.names == ("a",) and note in " ".join(table.notes)
    assert bool(table.notes) == bool(note)


def test_texts_that_do_not(tmp_path):
    lines = ["size,y"] + [f"{'12 kg' if i % 2 else '13-14'},{i % 3}" for i in range(80)]
    table = read_table(csv_file(tmp_path, lines))
    assert table.names == ("size = 13-14",)
    assert "1 column of categories" in " ".join(table.notes)


def test_a_few_words_among_numbers_are_told(tmp_path, rng):
    lines = ["a,y"] + [f"{'unknown' if i == 9 else rng.normal()},{i % 3}" for i in range(80)]
    table = read_table(csv_file(tmp_path, lines))
    text = " ".join(table.notes)
    assert "“unknown” in a is no number; 1 such cell left empty" in text and "1 gap filled" in text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(tmp_path, rng, encoding):
    path = tmp_path / "data.csv"
    lines = ["größe|y"] + [f"{rng.normal()}|{i % 3}" for i in range(80)]
    path.write_bytes("\r\n".join(lines).encode(encoding))
    table = read_table(path)
    assert table.names == ("größe",) and len(table.y) == 80
    assert ("not UTF-8" in " ".join(table.notes)) == (encoding == "cp1252")


def test_names_that_are_missing_or_occur_twice(tmp_path, rng):
    lines = ["# exported", "", ",a,a,y,,"]
    lines += [f"{i},{rng.normal()},{rng.normal()},{i % 3},," for i in range(80)]
    table = read_table(csv_file(tmp_path, lines))
    assert table.names == ("a", "a (2)") and table.label == "y"
    text = " ".join(table.notes)
    assert "called “a”; they were numbered" in text and "counts the rows: column 1" in text


def test_numbers_whose_squares_overflow(tmp_path, rng):
    a = rng.standard_normal(80)
    lines = ["large,small,y"] + [f"{v * 1e300},{v * 1e-200},{i % 3}" for i, v in enumerate(a)]
    table = read_table(csv_file(tmp_path, lines))
    assert np.abs(table.x).max() == 1 and "units of the largest: large, small" in table.notes[0]
    np.testing.assert_allclose(table.x[:, 0], a / np.abs(a).max())
    with pytest.raises(SpecError, match="y in another unit"):
        read_table(csv_file(tmp_path, ["a,y"] + [f"{v},{v * 1e200}" for v in a]))


def test_an_unclosed_quote_is_refused(tmp_path, rng):
    """A quote in the middle that another one closes far below, and one that nothing closes."""
    lines = ["a,text,y"] + [f"{i % 7},word,{i}.5" for i in range(120)]
    lines[20] = '3,"word,1.5'
    with pytest.raises(SpecError, match="quote is not closed"):
        read_table(csv_file(tmp_path, lines))
    lines[81] = '3,word",1.5'
    with pytest.raises(SpecError, match=r"row 21 spans 62 lines"):
        read_table(csv_file(tmp_path, lines))


def test_rows_of_several_lines_are_told(tmp_path):
    lines = ["a,text,y"] + [
        f'{i % 7},"{"two" if i % 2 else "lines"}\nhere",{i}.5' for i in range(70)
    ]
    table = read_table(csv_file(tmp_path, lines))
    assert len(table.y) == 70 and "140 lines below the header became 70 rows" in table.notes[0]


def test_rows_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr("onegrad.tabular.reading.reading._MOST_ROWS", 200)
    table = read_table(csv_file(tmp_path, ["a,y"] + [f"{i % 7},{i}.5" for i in range(3000)]))
    assert np.all(np.diff(table.y) > 0) and table.total == 3000 and len(table.y) == 200


def test_billions(tmp_path, rng):
    cells = [f"${v:.2f}{u}" for v, u in zip(10 * rng.random(80), ["bn", "M"] * 40, strict=True)]
    lines = ["sales,y"] + [f"{cell},{i % 3}" for i, cell in enumerate(cells)]
    table = read_table(csv_file(tmp_path, lines))
    assert table.names == ("sales",) and table.x.max() > 1e9


CAUTIONS = {
    "dates": "--time", "leak": "is a sum of", "copy": "is a copy of",
    "counts": "If they are counts",
    "one class": "of the rows are of class", "copies": "are copies of others",
    "text": "left out as text, but its cells have numbers",
}  # fmt: skip


def careful(kind, rng):
    """A table with one thing to warn of, or none."""
    x = rng.standard_normal((200, 3)).round(6)
    y, more, name = (x[:, 0] + rng.standard_normal(200)).round(4), [""] * 200, "more"
    if kind == "dates":
        more, name = [f"2020-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(200)], "date"
    if kind in ("leak", "copy"):
        y = x[:, 0] + x[:, 1] if kind == "leak" else 3 * x[:, 0] + 1
    if kind == "counts":
        y = rng.poisson(2.0, 200)
    if kind == "one class":
        y = np.where(np.arange(200) % 20, "no", "yes")
    if kind == "copies":
        x[100:], y[100:] = x[:100], y[:100]
    if kind == "coarse":  # equal inputs by chance: no copies
        x = np.round(x / 2)
    if kind == "text":
        more = [f"{v:.3f} {'kg net' if v < 0 else 'm2'}" for v in x[:, 2]]
    return [f"a,b,c,{name},y"] + [
        ",".join([*map(str, row), cell, str(label)])
        for row, cell, label in zip(x, more, y, strict=True)
    ]


@pytest.mark.parametrize("kind", ["none", "coarse", *CAUTIONS])
def test_cautions(tmp_path, rng, kind):
    """Each where it belongs, and nowhere else."""
    told = read_table(csv_file(tmp_path, careful(kind, rng))).cautions
    assert [key for key, said in CAUTIONS.items() if any(said in text for text in told)] == (
        [kind] if kind in CAUTIONS else []
    )
    if kind == "leak":
        assert any("a sum of a, b, up to factors" in text for text in told)


def test_the_order_of_time_can_be_used(tmp_path, rng):
    """One row a day: the column that --time is advised for once was left out as a row counter."""
    values = rng.standard_normal((200, 2)).round(3)
    days = [f"{np.datetime64('2020-01-01') + i},{i},{a},{y}" for i, (a, y) in enumerate(values)]
    path = csv_file(tmp_path, ["day,number,a,y", *days])
    assert read_table(path).names == ("day", "a")
    for name in ("day", "number"):
        ordered = in_time(read_table(path, time=name), name)
        assert name in ordered.names and np.array_equal(ordered.y, values[:, 1])
        assert not ordered.cautions


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
