"""The theory: errors of the network without simulating it.

What is asked stands in `options`, the numbers that decide in `policy`, what an answer leaves open
in `open`. One problem is a `task`; `resolution` solves it at one resolution, `conditional` at finer
ones until two agree, and `draws` takes the mean over what `chance` leaves open.

The folders follow the derivation (docs/book): `directions` (spikes, means and teacher, and how
they overlap), `nodes` (where the data are looked at along these), `neurons` (what the step makes of
them), `layers` (features at the nodes, of neurons as types or of a matrix of weights), `readout`
(the fixed point, the errors, every loss), `size` (corrections of order 1/n), `spectra` (limiting
laws and outliers) and `isotropic` (closed forms for isotropic data, a check and a method by name).
"""
