"""Deterministic limits: what the network does, computed without sampling.

Mixtures with structure (docs/theory.md), from the ground up: `geometry` (the few directions),
`smoothing` and `moment_tables` (Gaussian averages of the activation), `neurons` (types after the
step), `nodes` (quadrature), `symmetry` (directions that are alike), `features`, `fixed_point`,
`second_moments` (the errors), `resolution` (one resolution), `conditional` (until it is accurate),
`learned` (the function itself).

Isotropic data (docs/isotropic.md): `expansions` (Hermite coefficients, the step's direction),
`traces` (m₁, m₂), `spiked` (the spikes), `losses` (Δ, Λ), `isotropic` (which of them applies);
`bulk`, `feature_law`, `spectrum` and `measured_spectrum` for singular values.

Real data (docs/real-data.md): `sample_nodes`, `semi_parametric` (one response),
`semi_parametric_nodes` (one for each node), `semi_parametric_predict`.
"""
