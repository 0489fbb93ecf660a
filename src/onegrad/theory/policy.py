"""Every number that decides which theory answers, how fine it is and what it states, in one place.

Numbers of algorithms (tolerances of iterations, sizes of stacks) stand beside these. A Policy is
passed as `Theory.policy`:

    og.predict(problem, policy=replace(Policy(), patience=1e7))
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """Limits that decide. Each field: its unit, why this value, what half and twice of it do.

    Which theory (predict/choose.py):

    uncertain : relative error estimate of types above which first layers are drawn, too. What
        layers leave open is about 1 %, so that below three times that they seldom say more. Half:
        more problems draw layers, for seconds each. Twice: fewer, and their estimates stay.
    layers_width : neurons up to which drawing layers takes seconds; the cost grows with the square
        and more. Half: wide uncertain problems keep the answer of types. Twice: they take a minute.
    types_width : neurons up to which layers answer where types are too long; see `patience`.
    patience : types × nodes beyond which layers are drawn instead: about two seconds of one core.
        Half or twice: that much of the slowest answers of types.
    refused : relative error estimate above which an answer is refused.

    Rules (theory/conditional.py):

    levels, levels_fine, levels_of_steps : finest resolution tried: at the default accuracy, at a
        better one, after several steps. One level costs about four times the one before.
    work : (T + S)R² + 150 T S of a resolution beyond which no finer one is tried, at the default
        accuracy; about two seconds. Half or twice: the slowest problems, by as much.
    iterated : cost of a loss that needs iterations, over the cost of the squared loss.
    of_sizes : error of the rules at which refinement stops, over the finite-size error, for losses
        without a 1/n correction. Half: finer rules, but no better numbers.
    tolerable : accuracies by which two resolutions of the squared loss may differ in an answer that
        is "not settled". Half: more refusals. Twice: answers 10 % off, stated.
    tolerable_loss : the same for other losses, as a relative difference.
    squares : weight of differences of squared errors, where the loss is for signs and the squared
        error is no measure of it.
    least_loss : share of the test loss: a smaller training loss is compared in units of it.
    fewest_degrees : samples left by the readout, m − df₂, below which no limit exists.
    grouped_directions, grouped_strong : special directions, and those of them that need more than
        two nodes, from which on directions that are alike are taken in groups.
    most_directions : directions with an axis each beyond which types take seconds.
    uncounted : relative effect of uncounted degrees of freedom beyond which types refuse.
    many_directions : special directions from which on each has not an axis of its own: rules over
        more are long. Half: more problems take directions in groups, whose overlaps are averaged
        by their lengths alone. Twice: rules over up to twenty axes, and minutes.

    Finite sizes (theory/size/finite_size.py), all relative to the errors:

    bound_at_rest, bound_by_step : error in units of (1 + degrees of the mean part)/size
        where there is no 1/n correction: without a step, and what a large step adds. Found by
        comparing random problems at n = 200 to 400 with simulations. Half: some of these were
        further off than stated. Twice: estimates of other losses and many spikes double.
    bound_of_losses : times that with other losses than the squared one (docs/book/losses.md).
    of_correction : share of a 1/n correction that is stated as its error: its rule is coarse, and
        higher orders are missing. Covers every number of notes/2026-11-finite-size.md, section 7.
        Half: two of these do not hold.
    of_chaos : error that features beyond linear in the bulk leave, over (their share of the
        variance)/(dimension of the bulk).
    of_cumulants : share of the cumulants' effect that is stated as an error if a correction exceeds
        5 %: they enter to first order. For a quartic polynomial at k/m = 0.9 they add 10 % to the
        error, networks have 4 % more.
    of_rows : error from treating the rows of a large step as isotropic, over their noise times
        n/m̃: ReLU loses 28 % of its training error where the noise says 79 %.
    largest_correction : relative size from which a correction is not applied: no expansion.
    smallest_bulk : directions of the bulk that an expansion in their inverse needs.
    correction_nodes : nodes beyond which there is no correction: a second, growing with their cube.
    stretch : variance τ² of the random stretch of neurons by the second-order term of a step at
        which errors may be 25 % off. At 0.03 random problems with even activations were 3 to 10 %
        off, at 10 they were 25 % off. Half: twice that much is stated for small τ².
    of_losses : the same of corrections with other losses than the squared one, which have the
        ratios of ridge regression at their curvature. Of 40 frozen problems none was off by more
        than 0.6 of its estimate at 0.3. Half: 0.7. Twice: the median estimate grows by a half.
    linear : fluctuation of the output over the test error up to which it follows linearly, for
        losses with kinks. Half: less of the variance between training sets is in the test error.

    First layers as they are (theory/layers/any_layer.py, theory/size/layer_size.py):

    layer_rule : share of the difference between two rules for the projections, with one response
        for all nodes, that joins the estimate where the shorter one gives the responses.
    layer_spent : share of the remaining degrees of freedom that the mean part may use; beyond,
        layers refuse. At 0.52 errors were off by a factor of three.
    layer_beside : what special directions beside the axes leave, in units of their number over n'.
    layer_disagree : if two ways to compute a part of the 1/n correction differ by more than this,
        relative, none is made.
    layer_open : least relative error that is stated.
    layer_correction : share of the 1/n correction stated as its error: clustered neurons, coarse
        nodes, higher orders.

    Chance (theory/chance.py, theory/draws.py):

    step_chance : k times the variance, over b₀², that chance adds to preactivations along strong
        spikes, above which it is averaged over. Half: more variables, for 0.2 % of the errors.
        Twice: errors of 0.5 % are left.
    step_chance_of_many : the same of many directions taken in groups, above which types refuse:
        that cannot be averaged over. Up to 0.2 it changed errors of frozen problems by less than
        0.1 %. Half or twice: one problem of 847 draws layers or not.

    mean_known : part of the accuracy to which a mean over draws is wanted. Half: twice to four
        times the points. Twice: that error is stated.
    mean_beside : the same as a share of the other errors; the larger limit holds.

    Curves (predict/curves.py):

    curve_points : points of a curve from which on some are interpolated.
    curve_nodes, curve_draft_nodes : points computed first; twice the intervals where that fails.
    curve_most : part of the points; where more would be needed all are computed.
    curve_misfit : accuracies by which a point may differ from what others say about it. Of 57
        curves of 20 points those within a quarter were wrong by 0.05 % at most between points.
    curve_beside : the same as a share of the point's own error estimate. Twice:
        interpolated points of other losses differ from computed ones by 1/5 of their estimate.
    """

    uncertain: float = 0.03
    layers_width: int = 1000
    types_width: int = 2000
    patience: float = 3e6
    refused: float = 1.0

    levels: int = 3
    levels_fine: int = 4
    levels_of_steps: int = 2
    work: float = 1.5e8
    iterated: float = 5.0
    of_sizes: float = 0.1
    tolerable: float = 5.0
    tolerable_loss: float = 0.4
    squares: float = 1 / 3
    least_loss: float = 0.1
    fewest_degrees: float = 10.0
    grouped_directions: int = 4
    grouped_strong: int = 4
    most_directions: int = 60
    uncounted: float = 0.05
    many_directions: int = 10

    bound_at_rest: float = 0.8
    bound_by_step: float = 2.5
    bound_of_losses: float = 2.0
    of_correction: float = 0.15
    of_chaos: float = 0.5
    of_cumulants: float = 0.7
    of_rows: float = 0.33
    largest_correction: float = 1.0
    smallest_bulk: int = 10
    correction_nodes: int = 1500
    stretch: float = 0.2
    of_losses: float = 0.3
    linear: float = 0.07

    layer_rule: float = 0.1
    layer_spent: float = 0.4
    layer_beside: float = 0.7
    layer_disagree: float = 0.02
    layer_open: float = 0.005
    layer_correction: float = 0.2

    step_chance: float = 0.02
    step_chance_of_many: float = 0.5
    mean_known: float = 0.5
    mean_beside: float = 0.3

    curve_points: int = 16
    curve_nodes: int = 11
    curve_draft_nodes: int = 9
    curve_most: float = 0.75
    curve_misfit: float = 0.25
    curve_beside: float = 0.1
