"""Real tables from packages: scikit-learn's, Debian's r-cran-* (through pyreadr), Fashion-MNIST.

Nothing is downloaded. `folder` holds R libraries: /usr/lib/R after `apt-get install r-cran-mlbench
r-cran-kernlab r-cran-ggplot2 r-cran-modeldata r-cran-cardata r-cran-mlmrev`, or what
`dpkg-deb -x` makes of the same packages. Tables that are not there are left out and told.

CORPUS are the tables that the forecast of learning curves was fitted to, HELD_OUT those of its
back-test. All packages: r-cran- and the names below in small letters.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onegrad.tabular.reading.table import Raw, Table, Task, cleaned, column_of


@dataclass(frozen=True)
class Source:
    """A data frame of an R package: the smallest with these columns; label; columns to drop."""

    name: str
    package: str
    columns: tuple[str, ...]
    label: str
    drop: tuple[str, ...] = ()
    task: Task | None = None


SOURCES = (
    Source("satellite", "mlbench", ("x.1", "x.36", "classes"), "classes"),
    Source("letters", "mlbench", ("lettr", "x.box"), "lettr"),
    Source("dna", "mlbench", ("V1", "V180", "Class"), "Class"),
    Source("spam", "kernlab", ("capitalAve", "type"), "type"),
    Source("diamonds", "ggplot2", ("carat", "cut", "price"), "price"),
    Source("housing (ames)", "modeldata", ("Lot_Area", "Sale_Price"), "Sale_Price"),
    Source("cells", "modeldata", ("class", "angle_ch_1"), "class", ("case",)),
    Source("credit", "modeldata", ("Status", "Seniority"), "Status"),
    Source("churn", "modeldata", ("account_length", "churn"), "churn"),
    Source("telephone churn", "modeldata", ("churn", "senior_citizen", "tenure"), "churn"),
    Source("loans", "modeldata", ("funded_amnt", "int_rate"), "int_rate", ("sub_grade",)),
    Source("jobs (hpc)", "modeldata", ("protocol", "compounds", "class"), "class"),
    Source("trains", "modeldata", ("ridership", "Austin"), "ridership", ("date",)),
    Source("concrete", "modeldata", ("cement", "compressive_strength"), "compressive_strength"),
    Source("wages", "carData", ("wages", "education", "language"), "wages"),
    Source("school (hsb82)", "mlmRev", ("mAch", "minrty"), "mAch", ("school",)),
)  # fmt: skip
LATER = (
    Source("shuttle", "mlbench", ("V1", "V9", "Class"), "Class"),
    Source("income", "kernlab", ("INCOME", "HOME.TYPE"), "INCOME", (), "classification"),
    Source("storms", "dplyr", ("status", "pressure"), "status", ("name", "category")),
    Source("proteins", "gss", ("praf", "pjnk", "grp"), "grp", (), "classification"),
    Source("remote work", "modeldata", ("Remote", "Salary"), "Remote"),
    Source("insurance", "AER", ("insurance", "limit", "region"), "insurance"),
    Source("deaths (flchain)", "survival", ("kappa", "flc.grp", "death"), "death",
           ("futime", "chapter"), "classification"),
    Source("deaths (rotterdam)", "survival", ("pgr", "hormon", "death"), "death",
           ("pid", "rtime", "recur", "dtime"), "classification"),
    Source("grants", "modeldata", ("num_ci", "ci_1900", "class"), "class"),
    Source("german credit", "caret", ("Duration", "ForeignWorker", "Class"), "Class"),
    Source("attrition", "modeldata", ("Attrition", "DailyRate"), "Attrition"),
    Source("life expectancy", "dslabs", ("life_expectancy", "gdp"), "life_expectancy",
           ("country",), "regression"),
    Source("earnings", "laeken", ("earningsHour", "NACE1"), "earningsHour",
           ("IDunit", "earnings", "earningsMonth", "weightsEmployers", "weightsEmployees",
            "weights"), "regression"),
    Source("household income", "laeken", ("eqIncome", "hsize"), "eqIncome",
           ("db030", "rb030", "db090", "rb050"), "regression"),
    Source("wine", "VIM", ("points", "price", "variety"), "points",
           ("taster_twitter_handle", "winery"), "regression"),
    Source("emissions", "robustbase", ("LNOx", "sqrtWS"), "LNOx", (), "regression"),
    Source("college", "AER", ("score", "fcollege"), "score", (), "regression"),
    Source("language", "mlmRev", ("langPOST", "IQ.verb"), "langPOST",
           ("schoolNR", "pupilNR"), "regression"),
    Source("homes (texas)", "ggplot2", ("listings", "median"), "median", ("date",), "regression"),
    Source("check times", "modeldata", ("check_time", "r_size"), "check_time", ("package",),
           "regression"),
    Source("homes (sacramento)", "modeldata", ("sqft", "latitude", "price"), "price", ("zip",),
           "regression"),
)  # fmt: skip


MORE = (
    Source("arrests", "carData", ("released", "colour", "checks"), "released"),
    Source("vocabulary", "carData", ("vocab", "ageGroup", "educ"), "vocab", (), "regression"),
    Source("hourly earnings", "AER", ("earnings", "gender", "age", "region"), "earnings"),
    Source("smoking ban", "AER", ("smoker", "ban"), "smoker"),
    Source("exams", "mlmRev", ("normexam", "standLRT"), "normexam", ("student",)),
    Source("lectures", "lme4", ("studage", "lectage", "y"), "y", ("s", "d"), "regression"),
    Source("crime", "AER", ("violent", "murder", "density"), "violent", ("state", "murder"),
           "regression"),
)  # fmt: skip
CORPUS = (*SOURCES, *LATER, *MORE)

# Tables for the back-test alone: no constant of any forecast was chosen on them.
HELD_OUT = (
    Source("poverty", "carData", ("poverty", "religion", "country"), "poverty"),
    Source("chile", "carData", ("vote", "statusquo"), "vote"),
    Source("wells", "carData", ("switch", "arsenic"), "switch"),
    Source("patents", "sandwich", ("cites", "tobinq"), "tobinq", ("company",), "regression"),
    Source("swiss forest", "sampling", ("HApoly", "Surfacesbois"), "Surfacesbois", ("COM", "Nom"),
           "regression"),
    Source("fruit", "rrcov", ("cultivar", "V1", "V256"), "cultivar"),
    Source("titanic", "stablelearner", ("survived", "fare"), "survived", ("name", "ticketno")),
    Source("caravan", "kernlab", ("STYPE", "CARAVAN"), "CARAVAN"),
    Source("mortgages", "AER", ("deny", "pirat"), "deny"),
    Source("wages (psid)", "AER", ("wage", "weeks", "occupation", "year"), "wage", ("id",),
           "regression"),
    Source("visits", "AER", ("visits", "nvisits", "hospital"), "visits",
           ("nvisits", "ovisits", "novisits"), "regression"),
    Source("names", "AER", ("name", "call"), "call"),
    Source("kids", "AER", ("kids", "siblings"), "kids", (), "regression"),
    Source("personality (bfi)", "psych", ("A1", "O5", "gender"), "gender"),
    Source("personality (spi)", "psychTools", ("q_253", "sex"), "sex"),
    Source("pisa", "GGally", ("PV1MATH", "homework"), "PV1MATH",
           ("PV2MATH", "PV3MATH", "PV4MATH", "PV5MATH"), "regression"),
    Source("temperature", "GGally", ("surftemp", "temperature"), "temperature", ("id",),
           "regression"),
    Source("bmi (nafld)", "survival", ("weight", "height", "bmi"), "bmi", ("id", "case.id"),
           "regression"),
    Source("rice", "plm", ("goutput", "urea"), "goutput", ("id",), "regression"),
    Source("wages (males)", "plm", ("nr", "wage", "school"), "wage", ("nr",), "regression"),
    Source("mathematics", "mlmRev", ("childid", "math"), "math", ("childid", "schoolid"),
           "regression"),
    Source("well-being", "multilevel", ("WBEING", "LEAD", "G.WBEING"), "WBEING",
           ("W.WBEING", "G.WBEING"), "regression"),
    Source("elections", "rockchalk", ("jwins", "ku"), "jwins", ("prefecture", "cdnr", "jiban")),
    Source("heights", "mice", ("hgt", "wgt", "reg", "hgt.z"), "hgt", ("id", "hgt.z", "wgt.z"),
           "regression"),
    Source("vowels", "mlbench", ("V1", "V10", "Class"), "Class"),
    Source("aggression", "lme4", ("Anger", "resp"), "resp", ("id", "r2")),
)  # fmt: skip


def tables(folder: Path, sources: Sequence[Source] = CORPUS) -> Iterator[tuple[str, Table]]:
    """Every table that is there, cleaned as `onegrad analyze` does; images with SOURCES only."""
    if sources is CORPUS:
        yield "digits", _digits()
    frames: dict[str, list[Any]] = {}
    for source in sources:
        if source.package not in frames:
            frames[source.package] = list(_frames(folder, source.package))
        fitting = [
            frame for frame in frames[source.package]
            if {*source.columns} <= {str(c) for c in frame.columns} and len(frame) > 500
        ]  # fmt: skip
        if fitting:
            yield source.name, _table(min(fitting, key=lambda f: len(f.columns)), source)
        else:
            print(f"{source.name}: not there (package r-cran-{source.package.lower()})")
    fashion = _fashion() if sources is CORPUS else None
    if fashion is not None:
        yield "fashion-mnist", fashion


def _digits() -> Table:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    keep = x.std(axis=0) > 0
    names = tuple(f"pixel {i}" for i in np.flatnonzero(keep))
    return Table(x[:, keep], y.astype(str), names, "digit", "classification", ())


def _fashion(rows: int = 4_000) -> Table | None:
    from onegrad.data.formats import read_idx

    folder = Path("/usr/share/datasets/fashion-mnist")
    found = [sorted(folder.glob(f"t10k-{kind}*")) + sorted(folder.glob(f"train-{kind}*"))
             for kind in ("images", "labels")]  # fmt: skip
    if not all(found):
        return None
    x, y = read_idx(found[0][-1], "data"), read_idx(found[1][-1], "data")
    keep = np.random.default_rng(0).choice(len(x), rows, replace=False)
    flat = x[keep].reshape(rows, -1).astype(float)
    names = tuple(f"pixel {i}" for i in range(flat.shape[1]))
    return Table(flat, y[keep].astype(str), names, "class", "classification", ())


def _table(frame: Any, source: Source) -> Table:
    frame = frame.drop(columns=[c for c in source.drop if c in frame.columns])
    columns = {
        str(name): column_of([None if _missing(v) else v for v in frame[name].tolist()])
        for name in frame.columns
    }
    return cleaned(Raw(columns, source.label), source.task)


def _missing(value: Any) -> bool:
    return value is None or value != value


def _frames(folder: Path, package: str) -> Iterator[Any]:
    for place in sorted(folder.rglob(f"*library/{package}/data")):
        for path in sorted(place.iterdir()):
            if path.name == "Rdata.rdb":
                for content in _serialised(path.read_bytes()):
                    with tempfile.NamedTemporaryFile(suffix=".rds") as file:
                        file.write(gzip.compress(content, 1))
                        file.flush()
                        yield from _read(Path(file.name))
            elif path.suffix.lower() in (".rda", ".rdata"):
                yield from _read(path)


def _read(path: Path) -> Iterator[Any]:
    import pyreadr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = pyreadr.read_r(path)
        except Exception:  # lists and S4 objects
            return
    yield from (frame for frame in found.values() if hasattr(frame, "columns"))


def _serialised(raw: bytes) -> Iterator[bytes]:
    """The objects of a lazy-load database: length (4 bytes), then zlib, bzip2 or xz."""
    place = 0
    while place < len(raw) - 5:
        length = struct.unpack(">I", raw[place : place + 4])[0]
        kind = raw[place + 4 : place + 5]
        begin = place + 4 + (kind in b"2Z")
        unpack: Any = zlib.decompressobj()
        if kind == b"2":
            unpack = bz2.BZ2Decompressor()
        elif kind == b"Z":
            filters = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
            unpack = lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=filters)
        try:
            content = unpack.decompress(raw[begin:])
        except (zlib.error, OSError, lzma.LZMAError, EOFError):
            place += 1
            continue
        if len(content) == length:
            yield content
            place = len(raw) - len(unpack.unused_data)
        else:
            place += 1
