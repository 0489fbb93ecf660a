"""Images as data: where they come from, what is done to them, and who gets which."""

import gzip
import hashlib
import shutil
import struct

import numpy as np
import pytest

import onegrad as og
from onegrad.compute.randomness import Streams
from onegrad.data import fashion_mnist
from onegrad.data.digits import Digits
from onegrad.data.fashion_mnist import DEBIAN, FILES, FashionMnist, load_fashion_mnist
from onegrad.data.formats import parse_idx, read_idx
from onegrad.data.images import ImagePopulation
from onegrad.errors import SpecError
from onegrad.problem import Problem
from onegrad.simulate.network.trial import Draw
from onegrad.spec.experiment import Experiment, Point
from tests.images import needs_fashion_mnist
from tests.keys import key_of

rng = np.random.default_rng


def digits(samples=100, **changes):
    tables = {
        "data": {"model": "digits", "classes": (3, 5)},
        "network": {"width": 30},
        "training": {"samples": samples},
        "scaling": {"strength": 1.0, "weighting": 0.0},
    }
    for table, keys in changes.items():
        tables[table] = {**tables.get(table, {}), **keys}
    return Problem(**tables)


# --- the IDX format ---------------------------------------------------------------------


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("code, dtype", [(0x08, ">u1"), (0x0C, ">i4"), (0x0E, ">f8")])
def test_idx_round_trip(tmp_path, code, dtype, compress):
    want = np.arange(12).reshape(3, 4).astype(dtype)
    raw = struct.pack(">BBBBII", 0, 0, code, 2, 3, 4) + want.tobytes()
    path = tmp_path / "some.idx"
    path.write_bytes(gzip.compress(raw) if compress else raw)
    np.testing.assert_array_equal(read_idx(path), want)


@pytest.mark.parametrize(
    "raw, what",
    [
        (b"", "not an IDX"),
        (b"\x89PNG\r\n", "not an IDX"),
        (bytes([0, 0, 7, 1, 0, 0, 0, 1, 5]), "not an IDX"),
        (bytes([0, 0, 8, 0]), "not an IDX"),
        (bytes([0, 0, 8, 200, 0, 0]), "not an IDX"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 9, 5]), "header says"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 1, 5, 6]), "header says"),
    ],
)
def test_damaged_idx_is_refused(raw, what):
    with pytest.raises(SpecError, match=what):
        parse_idx(raw, "file")


def test_cut_gzip_is_refused(tmp_path):
    path = tmp_path / "cut.gz"
    content = bytes([0, 0, 8, 1]) + (10_000).to_bytes(4, "big") + rng(0).bytes(10_000)
    path.write_bytes(gzip.compress(content)[:-4000])
    with pytest.raises(SpecError, match=r"cannot be read.*damaged"):
        read_idx(path)


# --- preprocessing ----------------------------------------------------------------------


@pytest.mark.parametrize("centring", ["class", "common"])
def test_centring_and_equal_traces(centring):
    generator = rng(1)
    first = generator.integers(0, 200, (40, 6)).astype(np.uint8)
    second = generator.integers(30, 90, (50, 6)).astype(np.uint8)
    population = ImagePopulation.of(first, second, centring)
    assert len(population) == 80
    rows = np.arange(80)
    x, c = population.structure(rows), population.components(rows)
    traces = [float(np.square(x[c == j]).sum(axis=1).mean()) for j in (0, 1)]
    assert traces == pytest.approx([1.0, 1.0])
    means = np.stack([x[c == j].mean(axis=0) for j in (0, 1)])
    if centring == "class":
        np.testing.assert_allclose(means, 0, atol=1e-12)
    else:
        raw = first[:40].mean(axis=0) - second[:40].mean(axis=0)
        np.testing.assert_allclose(means[0] / population.scales[0], raw / 2, atol=1e-10)
        np.testing.assert_allclose(means[1] / population.scales[1], -raw / 2, atol=1e-10)
    # the first image of the second class, by hand
    by_hand = (second[0] - population.means[1]) * population.scales[1]
    np.testing.assert_allclose(x[1], by_hand)


def test_the_sample_has_the_trace_that_was_asked_for():
    """tr Σ̄ = n + θ, which is what the initial weights are scaled by."""
    problem = digits(data={"spread": 200.0}, scaling={"strength": None, "weighting": None},
                     training={"rate": 1.0})  # fmt: skip
    assert problem.mean_trace == 264 and problem.weight_variance == 1 / 264
    population = problem.data.both_classes()
    rows = np.tile(np.arange(len(population)), 40)
    x = population.sample(rows, problem.spread, rng(3))
    square = np.square(x).sum(axis=1)
    error = square.std() / np.sqrt(len(rows))
    assert square.mean() == pytest.approx(264, abs=4 * error)


def test_scales():
    problem = digits()
    assert problem.spread == 64 and problem.rate == 1 and problem.bulk_scale == 1
    noise = digits(data={"bulk": "noise"})
    assert noise.bulk_scale == pytest.approx(np.sqrt(0.5))
    assert problem.degree == 4  # β = 1: the cap of the rule


# --- disjoint, balanced, reproducible ---------------------------------------------------


def test_step_readout_and_test_share_no_image():
    problem = digits(samples=80, training={"step_samples": 61})
    draw = Draw(problem, Streams(0, 0))
    rows = draw.rows
    assert sorted(rows) == list(range(problem.data.rows))
    parts = rows[:61], rows[61:141], rows[141:]
    assert [len(set(p)) for p in parts] == [61, 80, problem.rows_left]
    assert abs(int((parts[0] % 2).sum()) * 2 - 61) <= 1 and (parts[1] % 2).sum() == 40
    # the batches hold those images: white noise is what is left without them
    for batch, part in ((draw.step_batch, parts[0]), (draw.train.batch, parts[1])):
        np.testing.assert_array_equal(batch.component, part % 2)
        np.testing.assert_array_equal(batch.y, 1.0 - 2.0 * (part % 2))
        rest = batch.x - np.sqrt(problem.spread) * problem.data.both_classes().structure(part)
        assert abs(rest.std() - 1) < 0.05 and abs(rest.mean()) < 0.05
    tests = list(draw.test_batches(100))
    assert sum(len(b) for b in tests) == 100
    assert sum(len(b) for b in draw.test_batches(10_000)) == problem.rows_left


def test_seeds_differ_and_repeat():
    problem = digits()
    first, again, other = (Draw(problem, Streams(0, s)).step_batch.x for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


def test_halves_are_disjoint():
    whole = Digits(classes=(3, 5)).both_classes()
    halves = [Digits(classes=(3, 5), part=f"{p}-half").both_classes() for p in ("first", "second")]
    assert len(halves[0]) == 2 * 91 and len(halves[1]) == 2 * 91
    for j in (0, 1):
        rows = [half.pixels[j::2] for half in halves]
        np.testing.assert_array_equal(rows[0], whole.pixels[j::2][:91])
        assert not set(map(bytes, rows[0])) & set(map(bytes, rows[1]))


def test_counts_of_digits_are_those_of_the_data():
    _, labels = Digits().images()
    assert tuple(np.bincount(labels)) == Digits.per_class


def test_label_noise_enters_training_and_risk():
    plain, noisy = (
        og.simulate(digits(labels={"model": "component", "noise": s}), seeds=2, rng=1)
        for s in (0.0, 2.0)
    )
    assert noisy.test_error.mean > plain.test_error.mean + 4


# --- refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [(3, 3), (0, 10), (-1, 2)])
def test_wrong_classes(classes):
    with pytest.raises(SpecError, match=r"data\.classes.*two different classes from 0 to 9"):
        Digits(classes=classes)


def test_too_many_samples_are_refused_with_the_number_there_is():
    with pytest.raises(SpecError, match=r"training\.samples.*the data have 364"):
        digits(samples=182)
    compare = Experiment.read(_spec(compare={"test_samples": 164})).compare
    Point({}, digits(), compare)
    with pytest.raises(SpecError, match=r"compare\.test_samples = 165: must be at most 164"):
        Experiment.read(_spec(compare={"test_samples": 165}))


def _spec(**changes):
    dumped = digits().model_dump(mode="json", exclude_none=True)
    return {**dumped, **changes}


def test_labels_that_do_not_fit():
    with pytest.raises(SpecError, match=r'labels\.model.*"component" or "given"'):
        digits(labels={"model": "single-index"})
    given = digits(labels={"model": "given"})
    assert given.row_batch(np.arange(4), rng(0)).y.tolist() == [1.0, -1.0, 1.0, -1.0]


def test_spread_or_scaling():
    with pytest.raises(SpecError, match=r"data\.spread.*cannot be combined"):
        digits(data={"spread": 10.0})
    with pytest.raises(SpecError, match=r"data\.spread.*is needed"):
        digits(scaling={"strength": None, "weighting": None}, training={"rate": 1.0})


def test_where_the_images_lie_does_not_change_a_stored_point(tmp_path):
    tables = {
        "data": {"model": "fashion-mnist"}, "network": {"width": 30},
        "training": {"samples": 100}, "scaling": {"strength": 1.0, "weighting": 0.0},
    }  # fmt: skip
    for name in FILES:
        (tmp_path / name).write_bytes(b"")
    here = Experiment.read(tables).points[0]
    moved = {**tables, "data": {"model": "fashion-mnist", "path": str(tmp_path)}}
    assert key_of(here) == key_of(Experiment.read(moved).points[0])
    other = {**tables, "data": {"model": "fashion-mnist", "classes": [0, 2]}}
    assert key_of(here) != key_of(Experiment.read(other).points[0])


# --- Fashion-MNIST ----------------------------------------------------------------------


@pytest.fixture
def unloaded():
    load_fashion_mnist.cache_clear()
    yield
    load_fashion_mnist.cache_clear()


def test_a_directory_without_the_files(tmp_path):
    with pytest.raises(SpecError, match=r"data\.path.*lacks the file train-images.*Debian"):
        FashionMnist(path=tmp_path)
    with pytest.raises(SpecError, match=r"data\.path.*is not a directory"):
        FashionMnist(path=tmp_path / "nowhere")


def test_damaged_contents_are_reported(tmp_path, unloaded):
    for name in FILES:
        header = struct.pack(">BBBBI", 0, 0, 8, 1, 3)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(header + b"abc"))
    with pytest.raises(SpecError, match=r"train-images.*not the published file.*c59f468a"):
        FashionMnist(path=tmp_path).images()


def test_none_at_hand(monkeypatch, tmp_path, unloaded):
    import pooch

    def offline(*arguments, **options):
        raise OSError("no network")

    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path)
    monkeypatch.setattr(pooch, "retrieve", offline)
    with pytest.raises(SpecError, match=r"not at hand.*OSError.*dataset-fashion-mnist"):
        FashionMnist().images()


@needs_fashion_mnist
def test_a_download_is_checked_too(monkeypatch, tmp_path, unloaded):
    """The way of a download, without one: pooch hands over copies, the last one cut short."""
    import pooch

    asked = []

    def retrieve(url, known_hash, fname, path):
        asked.append(url)
        copy = tmp_path / fname
        raw = gzip.decompress((DEBIAN / fname).read_bytes())
        cut = fname.startswith("t10k-labels") and len(asked) <= 4
        copy.write_bytes(raw[:-1] if cut else raw)
        return str(copy)

    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "nowhere")
    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(SpecError, match=r"t10k-labels.*not the published file"):
        FashionMnist().images()
    assert all(url.startswith("https://") for url in asked)
    pixels, labels = FashionMnist().images()
    assert pixels.shape == (70_000, 784) and np.bincount(labels).tolist() == [7000] * 10


@needs_fashion_mnist
def test_the_published_images(tmp_path, unloaded):
    pixels, labels = load_fashion_mnist()
    assert pixels.shape == (70_000, 784) and pixels.dtype == np.uint8
    assert tuple(np.bincount(labels)) == FashionMnist.per_class
    raw = gzip.decompress((DEBIAN / "train-images-idx3-ubyte.gz").read_bytes())
    assert hashlib.sha256(raw).hexdigest().startswith("c59f468a")
    assert pixels[0].tobytes() == raw[16:800]
    for name in FILES:  # a directory of the user's own, half of it not compressed
        source = DEBIAN / f"{name}.gz"
        if "t10k" in name:
            (tmp_path / name).write_bytes(gzip.decompress(source.read_bytes()))
        else:
            shutil.copy(source, tmp_path)
    again, _ = load_fashion_mnist(tmp_path)
    np.testing.assert_array_equal(again[-1], pixels[-1])


@needs_fashion_mnist
def test_fashion_mnist_as_a_problem():
    problem = Problem.from_spec(
        {
            "data": {"model": "fashion-mnist", "classes": [5, 9]}, "network": {"width": 1500},
            "training": {"samples": 400}, "scaling": {"strength": 1.0, "weighting": 0.0},
        }
    )  # fmt: skip
    assert problem.dim == 784 and problem.rows_left == 13_200
    with pytest.raises(SpecError, match="the data have 14000"):
        Problem.from_spec({**problem.model_dump(exclude_none=True), "training": {"samples": 7000}})
    out = og.simulate(problem, ["network", "linear"], seeds=2, degree=4, test_samples=1000)
    # centred classes: nothing to gain for a linear model, but for a wide network
    assert out.estimates["linear"].test_error.mean == pytest.approx(1.0, abs=0.02)
    assert out.test_error.mean < 0.9
