"""Python functions as activations and links: as good as those with a formula, or refused."""

import cloudpickle
import numpy as np
import pytest

import onegrad as og

BASE = {"data": og.Mixture(dim=60), "training": og.Training(samples=80),
        "scaling": og.Scaling(strength=0.6, weighting=0.5)}  # fmt: skip


def bent(x):
    return np.where(x > 0, x, 0.1 * x)


@pytest.mark.parametrize("name, function", [
    ("tanh", lambda x: np.tanh(x)), ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ("softplus", lambda x: np.logaddexp(0, x)),
])  # fmt: skip
def test_a_function_is_as_good_as_the_built_in(name, function):
    ours, theirs = og.get_activation(name), og.get_activation(function)
    x = np.linspace(-8, 8, 201)
    assert np.abs(ours.slope(x) - theirs.slope(x)).max() < 1e-9
    assert "numeric differentiation" in theirs.note and "numeric" in repr(theirs)
    problems = [
        og.Problem(network=og.Network(activation=a, width=50), **BASE) for a in (name, function)
    ]
    a, b = (og.predict(p, accuracy=0.03).test_error for p in problems)
    assert a == pytest.approx(b, rel=1e-8)
    a, b = (og.simulate(p, seeds=1).test_error.mean for p in problems)
    assert a == pytest.approx(b, rel=1e-6)
    assert "numeric differentiation" in repr(problems[1])


def test_numpy_functions_that_we_know():
    assert og.get_activation(np.tanh).name == "tanh"
    assert og.Network(activation=np.sin, width=3).activation.name == "sin"


def test_labels_by_a_function():
    problem = og.Problem(labels=lambda t: t + t**2 / 2, network=og.Network(width=50), **BASE)
    link = "hermite(0.5, 1, 0.5)"
    same = og.Problem(labels=og.SingleIndex(link=link), network=og.Network(width=50), **BASE)
    a, b = (og.simulate(p, seeds=1).test_error.mean for p in (problem, same))
    assert a == pytest.approx(b, rel=1e-9)


@pytest.mark.parametrize("function, words", [
    (np.abs, ["bends or jumps near x = 0", "og.Activation(", "breakpoints=(0,)"]),
    (bent, ['bent = og.Activation("bent", bent, derivative', "activation=bent"]),
    (lambda x: max(x, 0), ["must take a NumPy array", "np.vectorize"]),
    (lambda s, t: s * t, ["must take a NumPy array"]),
    (lambda x: 1.0, ["shape ()"]),
    (np.log, ["infinite or undefined"]),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_cannot_be_taken_is_advice(function, words):
    with pytest.raises(og.SpecError) as error:
        og.Network(activation=function, width=3)
    for word in ["network.activation", *words]:
        assert word in str(error.value)


def test_the_two_lines_of_the_advice_work():
    derivative = lambda x: np.where(x > 0, 1.0, 0.1)  # noqa: E731
    leaky = og.Activation("bent", bent, derivative, breakpoints=(0,))
    assert og.Network(activation=leaky, width=3).activation.coefficients(1)[1] == pytest.approx(
        0.55
    )


def test_names_tell_functions_apart_and_travel():
    """Two functions called f are two: a store must not take one's rows for the other's."""
    one, other = (og.get_activation(f) for f in (lambda x: np.tanh(x), lambda x: np.tanh(2 * x)))
    assert one.name != other.name and one.name == og.get_activation(lambda x: np.tanh(x)).name
    again = cloudpickle.loads(cloudpickle.dumps(one))
    assert again.name == one.name and again.slope(np.zeros(1))[0] == pytest.approx(1)
