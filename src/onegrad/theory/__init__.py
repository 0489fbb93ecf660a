"""Deterministic limits: what the network does, computed without sampling.

Mixtures with structure (docs/book), from the ground up: `options` (what is asked), `geometry`
(the few directions of a problem), `symmetry` (directions that are alike), `nodes` (where the data
are looked at), `layers` (neurons after training, and their features at the nodes), `losses` (how
the readout is fitted), `woodbury`, `anderson` and `finite_size` (tools), `fixed_point`, `errors`,
`resolution` (one resolution), `conditional` (until it is accurate), `learned` (what f looks like).

Real data (docs/book/real-data.md): `semi_parametric`, with nodes and layers of its own.
Isotropic data (docs/book/closed-form.md): `isotropic`, closed forms and spectra.
"""
