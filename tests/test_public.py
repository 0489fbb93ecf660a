"""The public face: what `import onegrad` offers, documented, typed, and nothing by accident."""

import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import onegrad

PUBLIC = [name for name in onegrad.__all__ if name != "__version__"]


def documented(thing: object) -> bool:
    """A docstring of its own: not its base's, nor the list of fields that a dataclass makes."""
    text = thing.__dict__.get("__doc__") if inspect.isclass(thing) else inspect.getdoc(thing)
    name = getattr(thing, "__name__", "")
    return bool(text) and len(text) >= 20 and not text.startswith(f"{name}(")


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_docstring(name):
    thing = getattr(onegrad, name)
    assert documented(thing), f"{name} has no docstring"


def test_a_missing_docstring_is_seen():
    """Negative control."""

    class Bare(onegrad.Problem):
        pass

    assert not documented(Bare) and not documented(lambda: None)


def test_the_promised_names_are_there():
    promised = {
        "predict", "predict_curve", "simulate", "run", "spectrum", "degree", "load_results",
        "Problem", "Theory", "Prediction", "Simulation", "Results", "Row", "Summary", "Estimate",
        "SpectrumReport", "DegreeReport", "OnegradError", "register_activation", "fit_mixture",
    }  # fmt: skip
    assert promised <= set(PUBLIC) and len(PUBLIC) == len(set(PUBLIC))
    assert set(PUBLIC) <= set(dir(onegrad))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = onegrad.nonsense


def test_no_folder_shadows_a_public_name():
    """`import onegrad.predict.predict` makes the import system bind the folder to its parent."""
    probe = (
        "import onegrad, onegrad.predict.predict, onegrad.simulate, onegrad.spectrum.report\n"
        "import types\n"
        "print([n for n in dir(onegrad) if isinstance(getattr(onegrad, n), types.ModuleType)])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_public_functions_say_what_they_take_and_return():
    for name in PUBLIC:
        thing = getattr(onegrad, name)
        if inspect.isfunction(thing):
            assert "return" in typing.get_type_hints(thing), name


def test_nothing_is_loaded_before_it_is_used():
    probe = (
        "import sys, onegrad; loaded = [m for m in sys.modules if m.startswith('onegrad.')]; "
        "print(loaded, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.stdout.strip() == "[] False", done.stderr


def test_types_are_shipped():
    assert (Path(onegrad.__file__).parent / "py.typed").is_file()


def test_the_citation_names_this_version():
    text = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {onegrad.__version__}\n" in text
