"""The cases, as plain data: what is measured, and the spec that it is measured on.

`what` names the function of measure.py; other keys are its arguments. Sizes are tiny and ridges
large, so that the last bits of a linear algebra library stay the last bits of the numbers.
`rtol` is for single precision alone. Arrays cannot be written here: `table` says how they are made.
"""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]

MIXTURE: Spec = {
    "data": {"model": "mixture", "dim": 40},
    "labels": {"link": "relu"},
    "network": {"activation": "relu", "width": 50},
    "training": {"samples": 60, "ridge": 1e-2},
    "scaling": {"strength": 0.74, "weighting": 0.5},
    "compare": {"models": ["network", "hermite", "conditional-gaussian"], "seeds": 2},
}
ISOTROPIC: Spec = {
    "data": {"model": "isotropic", "dim": 40},
    "labels": {"link": "hermite(0, 1, 0.5)", "noise": 0.3},
    "network": {"convention": "isotropic", "activation": "tanh", "width": 50},
    "training": {"samples": 60, "ridge": 0.1},
    "scaling": {"exponent": 0.29},
    "compare": {"models": ["network", "hermite", "conditional-gaussian"], "seeds": 2},
}
DIGITS: Spec = {
    "data": {"model": "digits"},
    "network": {"activation": "relu", "width": 40},
    "training": {"samples": 60, "ridge": 1e-2},
    "scaling": {"strength": 0.74, "weighting": 0.5},
    "compare": {"models": ["network", "hermite", "gaussian", "random-features", "linear"],
                "seeds": 2},
}  # fmt: skip
# `data` of these comes from a `table`
TABLE: Spec = {
    "network": {"activation": "relu", "width": 30},
    "training": {"samples": 40, "ridge": 1e-2, "rate": 3.0},
    "compare": {"models": ["network", "hermite", "random-features", "linear", "kernel"],
                "seeds": 2, "degree": 3},
}  # fmt: skip
CLASSES = {"rows": 150, "columns": 12, "classes": 2}
NUMBERS = {"rows": 150, "columns": 12, "classes": 0}
THREE = {"weights": [0.5, 0.3, 0.2]}
ALL = ["network", "hermite", "conditional-gaussian", "gaussian", "random-features", "linear",
       "kernel"]  # fmt: skip
BOTH = {"strength": None, "weighting": None}


def changed(base: Spec, **tables: Any) -> Spec:
    """Tables of a spec with other entries; an entry of None is left out."""
    new = {name: dict(table) for name, table in base.items()}
    for name, table in tables.items():
        merged = {**new.get(name, {}), **table}
        new[name] = {key: value for key, value in merged.items() if value is not None}
    return {name: table for name, table in new.items() if table}


def _run(base: Spec, models: Any = None, **tables: Any) -> Spec:
    compare = {**({"models": models} if models else {}), **tables.pop("compare", {})}
    return {"what": "run", "spec": changed(base, compare=compare, **tables)}


def _predict(base: Spec, method: str = "auto", **tables: Any) -> Spec:
    options = {"method": method, **tables.pop("options", {})}
    more = {key: tables.pop(key) for key in ("learned", "table", "fitted") if key in tables}
    return {"what": "predict", "spec": changed(base, **tables), "options": options, **more}


SIMULATED: dict[str, Spec] = {
    # --- mixtures: models, activations, labels, structure ---
    "mixture-all-models": _run(MIXTURE, ALL),
    "mixture-all-models-sampled": _run(MIXTURE, ALL, compare={"risk": "sampled",
                                                              "test_samples": 400}),
    "mixture-all-models-exact": _run(MIXTURE, ALL, compare={"risk": "exact"}),
    "mixture-not-spiked": _run(MIXTURE, ["network", "spiked"]),
    "mixture-tanh-structure": _run(
        MIXTURE, ALL, network={"activation": "tanh"},
        data={"rank": 2, "strengths": [1.0, 0.5], "alignment": 0.5, "mean": 1.0},
    ),
    "mixture-sigmoid-constant-readout": _run(
        MIXTURE, ALL, network={"activation": "sigmoid", "readout": "constant"}
    ),
    "mixture-labels-only-wide": _run(
        MIXTURE, network={"width": None, "width_ratio": 1.5}, labels={"noise": 0.2},
        training={"gradient": "labels-only", "step_samples": 80},
    ),
    "mixture-erf-orthogonal": _run(
        MIXTURE, ALL, network={"activation": "erf"}, labels={"link": "tanh", "noise": 0.2},
        data={"directions": "orthogonal", "counts": "proportional"},
    ),
    "mixture-hermite-fixed": _run(
        MIXTURE, network={"activation": "hermite(0, 1, 0.5)"}, data={"directions": "fixed"},
        labels={"link": "sin", "direction": "spikes"}, scaling={"strength": 0.45},
    ),
    "mixture-gelu-links": _run(
        MIXTURE, network={"activation": "gelu"}, data=THREE,
        labels={"link": ["relu", "tanh", "softplus"], "noise": 0.1},
    ),
    "mixture-elu-unequal": _run(
        MIXTURE, network={"activation": "elu"}, data={"weights": [0.8, 0.2], "alignment": -0.4},
        labels={"link": "identity"}, training={"samples": 30},
    ),
    "mixture-component-labels": _run(MIXTURE, ALL, data={"mean": 1.5},
                                     labels={"model": "component", "link": None}),
    "mixture-component-values": _run(
        MIXTURE, data={**THREE, "mean": 2.0},
        labels={"model": "component", "link": None, "values": [1, 0, -2], "noise": 0.3},
    ),
    "mixture-by-hand": _run(
        MIXTURE, scaling=BOTH, data={"spread": 6.0}, training={"rate": 4.0}, compare={"degree": 2}
    ),
    "mixture-no-degree": _run(MIXTURE, scaling=BOTH, data={"spread": 6.0}, training={"rate": 4.0}),
    "mixture-no-step": _run(MIXTURE, scaling={"weighting": 0.0}, data={"rank": 0}),
    "mixture-other-convention": _run(
        MIXTURE, ALL, network={"convention": "isotropic"}, scaling=BOTH, data={"spread": 4.0},
        training={"rate": 1.5, "ridge": 0.1},
    ),
    # --- isotropic data ---
    "isotropic-all-models": _run(ISOTROPIC, [*ALL, "spiked"]),
    "isotropic-sampled": _run(ISOTROPIC, [*ALL, "spiked"], compare={"risk": "sampled",
                                                                    "test_samples": 400}),
    "isotropic-small-step": _run(ISOTROPIC, [*ALL, "spiked"], scaling={"exponent": 0.1},
                                 network={"activation": "relu"}),
    "isotropic-large-step": _run(
        ISOTROPIC, [*ALL, "spiked"], network={"activation": "sigmoid", "width": 80},
        scaling={"exponent": 0.4, "constant": 1.5},
        training={"gradient": "labels-only", "step_samples": 90},
    ),
    "isotropic-mixture-convention": _run(
        ISOTROPIC, ALL, network={"convention": "mixture", "activation": "relu"},
        scaling={"exponent": None, "strength": 0.74, "weighting": 0.8}, training={"ridge": 1e-2},
    ),
    # --- somebody's data ---
    "digits": _run(DIGITS),
    "digits-theory": _run(DIGITS, ["network", "theory", "surrogate"], compare={"accuracy": 0.03}),
    "digits-common": _run(
        DIGITS, data={"classes": [3, 8], "centring": "common", "part": "first-half",
                      "bulk": "noise"},
        labels={"model": "given"}, training={"samples": 40},
    ),
    "digits-values": _run(DIGITS, ["network", "kernel", "conditional-gaussian"],
                          data={"part": "second-half", "spread": 30.0}, scaling=BOTH,
                          labels={"model": "component", "values": [2, -1], "noise": 0.2},
                          training={"rate": 5.0, "samples": 40}),
    "fashion-mnist": _run(DIGITS, data={"model": "fashion-mnist"},
                          compare={"test_samples": 300}),
    "arrays-classes": {**_run(TABLE), "table": CLASSES},
    "arrays-numbers": {**_run(TABLE, ["network", "hermite", "linear", "conditional-gaussian"]),
                       "table": NUMBERS},
    "file-csv": {**_run(TABLE), "table": {**NUMBERS, "file": "csv"}},
    "file-npz": {**_run(TABLE), "table": {**CLASSES, "file": "npz"}},
    # --- devices and precision ---
    "torch": _run(MIXTURE, ALL, compare={"device": "torch"}, network={"activation": "tanh"}),
    "torch-isotropic": _run(ISOTROPIC, [*ALL, "spiked"], compare={"device": "torch"}),
    "float32": {**_run(MIXTURE, ["network", "hermite", "random-features"],
                       compare={"dtype": "float32"}), "rtol": 1e-5},
    "torch-float32": {**_run(MIXTURE, ["network", "hermite"], network={"activation": "tanh"},
                             compare={"device": "torch", "dtype": "float32"}), "rtol": 1e-5},
    # --- many repetitions, many points ---
    "control-variates": _run(MIXTURE, ["network", "hermite"], labels={"noise": 0.1},
                       compare={"control_variates": True, "seeds": 10}),
    "control-variates-isotropic": _run(ISOTROPIC, ["network", "random-features"],
                                 compare={"control_variates": True, "seeds": 9}),
    "sweep-shared-draws": _run(
        MIXTURE, ["network", "hermite", "random-features"], scaling=BOTH, data={"spread": 6.0},
        training={"rate": 4.0}, compare={"degree": 2},
        sweep={"network.activation": ["relu", "tanh", "gelu"], "training.ridge": [1e-2, 0.1],
               "training.rate": [1.0, 4.0]},
    ),
    "sweep-together": _run(
        MIXTURE, ["network", "hermite", "theory"], compare={"accuracy": 0.03},
        data={"weights": [0.7, 0.3]},
        sweep={"network.width_ratio": [0.5, 1.0], "zip": {
            "data.dim": [30, 50], "training.samples": [40, 70]}},
    ),
    "seeds-auto": _run(
        MIXTURE, ["network", "hermite"], sweep={"training.ridge": [1e-2, 0.1]},
        compare={"seeds": "auto", "precision": 0.06, "most_seeds": 24},
    ),
    "seeds-auto-plain": _run(
        ISOTROPIC, ["network"], compare={"seeds": "auto", "precision": 0.08, "most_seeds": 20,
                                         "control_variates": False},
    ),
    "simulate": {"what": "simulate", "spec": changed(MIXTURE, compare={"models": None}),
                 "options": {"models": ["network", "gaussian"], "seeds": 2, "rng": 5}},
    "simulate-control-variates": {
        "what": "simulate", "spec": changed(ISOTROPIC, compare={"models": None}),
        "options": {"models": ["network", "hermite"], "seeds": 9, "control_variates": True,
                    "degree": 3, "risk": "exact"},
    },
    "simulate-fitted-mixture": {
        "what": "simulate", "spec": TABLE, "fitted": True, "table": {**CLASSES, "columns": 30},
        "options": {"models": ["network", "conditional-gaussian"], "seeds": 2},
    },
}  # fmt: skip

COMPONENTS = {"model": "component", "link": None}
ALONG = [["teacher", 0], ["spike 1.1", 1]]
THEORY: dict[str, Spec] = {
    "auto-mixture": _predict(MIXTURE, learned=ALONG),
    "auto-isotropic": _predict(ISOTROPIC),
    "auto-isotropic-strong": _predict(ISOTROPIC, scaling={"exponent": 0.45, "constant": 2.0}),
    "conditional-drawn": _predict(MIXTURE, "conditional", options={"overlaps": "drawn", "rng": 3},
                                  network={"activation": "tanh"}),
    "conditional-typical": _predict(
        MIXTURE, "conditional", options={"overlaps": "typical"},
        data={"directions": "orthogonal", "alignment": 0.5}, network={"activation": "erf"},
    ),
    "conditional-draft": _predict(MIXTURE, "conditional", options={"accuracy": 0.03},
                                  learned=ALONG),
    "conditional-finite-size": _predict(
        MIXTURE, "conditional", options={"finite_size": True}),
    "conditional-classes": _predict(
        MIXTURE, "conditional", data={"weights": [0.7, 0.3]}, labels=COMPONENTS,
        learned=[["spike 1.1", 0], ["spike 2.1", 1]],
    ),
    # means beside random spikes: their numbers depend on the processor, up to the accuracy
    "conditional-means": _predict(MIXTURE, "conditional", data={"rank": 0, "mean": 1.5},
                                  labels=COMPONENTS, scaling={"weighting": 1.0}),
    "conditional-means-orthogonal": _predict(
        MIXTURE, "conditional", labels=COMPONENTS, options={"overlaps": "typical"},
        data={"mean": 1.5, "directions": "orthogonal", "weights": [0.7, 0.3]},
        learned=[["spike 1.1", 0]],
    ),
    "conditional-constant-readout": _predict(
        MIXTURE, "conditional",
        network={"readout": "constant", "activation": "sigmoid"},
        training={"gradient": "labels-only"},
    ),
    "conditional-isotropic": _predict(ISOTROPIC, "conditional", learned=[["teacher", 0]]),
    "conditional-spikes": _predict(
        MIXTURE, "conditional",
        data={"rank": 2, "strengths": [1.0, 0.4], "weights": [0.7, 0.3]},
        labels={"direction": "spikes", "link": ["relu", "tanh"], "noise": 0.2},
    ),
    "isotropic": _predict(ISOTROPIC, "isotropic"),
    "isotropic-limit": _predict(ISOTROPIC, "isotropic-limit"),
    "isotropic-relu": _predict(ISOTROPIC, "isotropic", network={"activation": "relu"},
                               scaling={"exponent": 0.1}, training={"gradient": "labels-only"}),
    "isotropic-refused": _predict(MIXTURE, "isotropic"),
    "semi-parametric": _predict(DIGITS, "semi-parametric"),
    "semi-parametric-draft": _predict(DIGITS, "semi-parametric", options={"accuracy": 0.03}),
    "surrogate": _predict(DIGITS, "surrogate"),
    "semi-parametric-arrays": _predict(TABLE, options={"accuracy": 0.03}, table=NUMBERS),
    "surrogate-arrays": _predict(TABLE, "surrogate", options={"accuracy": 0.03}, table=CLASSES),
    "fitted-mixture": _predict(TABLE, options={"accuracy": 0.03}, table=CLASSES, fitted=True),
    "curve": {"what": "curve", "spec": MIXTURE, "options": {"accuracy": 0.03},
              "values": {"training": [{"ridge": 1e-2}, {"ridge": 0.1}, {"samples": 90}]}},
    "curve-isotropic": {"what": "curve", "spec": ISOTROPIC, "options": {},
                        "values": {"network": [{"width": 30}, {"width": 90}]}},
    "activation-values": {"what": "activations", "names": [
        "relu", "tanh", "sigmoid", "erf", "gelu", "softplus", "elu", "sin", "identity",
        "hermite(0, 1, 0.5, -0.2)"]},
    "degree-mixture": {"what": "degree", "spec": MIXTURE},
    "degree-isotropic": {"what": "degree", "spec": ISOTROPIC},
    "spectrum": {"what": "spectrum", "spec": changed(ISOTROPIC, scaling={"constant": 2.0})},
    "spectrum-relu": {"what": "spectrum", "spec": changed(
        ISOTROPIC, network={"activation": "relu", "width": 30}, scaling={"constant": 3.0})},
    "fit-classes": {"what": "fit", "table": CLASSES, "with_labels": True},
    "fit-components": {"what": "fit", "table": CLASSES, "with_labels": False},
    "classifier": {"what": "estimator", "table": {**CLASSES, "classes": 3},
                   "options": {"width": 30, "random_state": 0}},
    "regressor": {"what": "estimator", "table": NUMBERS,
                  "options": {"width": 40, "activation": "tanh", "random_state": 1,
                              "rate": [0.0, 2.0], "ridge": [0.01, 0.1]}},
    "analysis-classes": {"what": "analysis", "table": {**CLASSES, "rows": 240}},
    "analysis-numbers": {"what": "analysis", "table": {**NUMBERS, "rows": 240}},
}  # fmt: skip

CASES: dict[str, Spec] = {**SIMULATED, **THEORY}
