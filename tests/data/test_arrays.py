"""Somebody's arrays and files: read as they are, or refused with advice."""

import numpy as np
import pytest

import onegrad as og
from onegrad.data.arrays import File, label_groups
from onegrad.errors import SpecError
from onegrad.problem import Problem

FILES = {
    "short.csv": (b"a,b,y\n1,2,3\n7\n4,5,6\n", "sample 2"),
    "headless.csv": (b"1,2,3\n4,5,6\n7,8,9\n", "column names"),
    "text.csv": (b"a,y\n1,2\nred,3\n", "red"),
    "nan.csv": (b"a,y\n1,2\nnan,3\n", "nan"),
    "label-only.csv": (b"y\n1\n2\n3\n", "one row per sample"),
    "tiny.csv": (b"a,y\n1,2\n", "two samples"),
    "cut.npz": (b"PK\x03\x04 and no more", "NPZ"),
    "wrong.xlsx": (b"PK", ".csv or .npz"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files_get_advice(tmp_path, name):
    content, words = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    tables = {
        "data": {"model": "file", "path": str(path)}, "network": {"width": 80},
        "training": {"samples": 1, "rate": 1.0},
    }  # fmt: skip
    with pytest.raises(SpecError, match=words) as caught:
        Problem.from_spec(tables)
    assert caught.value.problems[0].key.startswith("data")


def test_good_files_are_read(tmp_path):
    (tmp_path / "good.csv").write_text("a,target,b\n1,2,3\n\n4,5,6\n7,8,9\n")
    x = np.arange(12.0).reshape(4, 3)
    np.savez(tmp_path / "good.npz", x=x, y=x[:, 0])
    read = File(path=tmp_path / "good.csv", label="target").load()
    np.testing.assert_array_equal(read[0], [[1, 3], [4, 6], [7, 9]])
    np.testing.assert_array_equal(read[1], [2, 5, 8])
    np.testing.assert_array_equal(File(path=tmp_path / "good.npz").load()[0], x)
    with pytest.raises(SpecError, match='"target"'):
        File(path=tmp_path / "good.csv", label="targit")


@pytest.mark.parametrize("bad", [np.array([[1.0, np.nan]]), np.array([["a", "b"]])])
def test_arrays_with_holes_are_refused(bad):
    with pytest.raises(og.SpecError, match="finite"):
        og.Arrays(x=bad, y=np.ones(1))


def test_labels_as_classes_or_numbers():
    assert label_groups(np.repeat([3.0, 7.0], 10)).tolist() == [0] * 10 + [1] * 10
    assert not label_groups(np.random.default_rng(0).standard_normal(50)).any()
    assert not label_groups(np.array([1.0] * 30 + [2.0])).any()
