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

    Which theory (predict/engines.py):

    uncertain : relative error estimate of types above which first layers are drawn, too. What
        layers leave open is about 1 %, so that below three times that they seldom say more. Half:
        more problems draw layers, for seconds each. Twice: fewer, and their estimates stay.
    layers_width : neurons up to which drawing layers takes seconds; the cost grows with the square
        and more. Up to twice as many they answer where types are too long, see `patience`. Half:
        wide uncertain problems keep the answer of types. Twice: they take a minute.
    patience : types × nodes beyond which layers are drawn instead: about two seconds of one core.
        Half: the slowest answers of types take a second. Twice: four seconds.
    refused : relative error estimate from which on an answer is none: at 1 it may be wrong by a
        factor of two. Half: answers that are 50 % open become refusals. Twice: by a factor of
        three.

    Rules (theory/conditional.py):

    levels : number of the finest resolution tried; one costs about four times the one before. Half:
        steep labels stay "not settled". Twice: `work` ends the climb before.
    levels_fine : the same where an accuracy better than 1 % is asked for. Half: such accuracies are
        not reached. Twice: `work`, which grows with the accuracy asked for, ends the climb before.
    levels_of_steps : the same after several steps, where each neuron is a type of its own. Half:
        one coarser resolution, and an estimate 1.7 times as large. Twice: ten seconds instead of
        one.
    work : operations (T + S)R² + 150 T S of T types, S nodes and rank R beyond which no finer
        resolution is tried, at the default accuracy: about two seconds. Half: a few more answers
        are "not settled". Twice: the slowest answers take twice as long.
    iterated : work of a loss that is iterated over, in units of the squared loss. Half: such losses
        take up to four seconds. Twice: they stay at coarser resolutions.
    of_sizes : part of what finite sizes leave open to which rules need be known, for losses without
        a 1/n correction. Half: finer rules for numbers that are not better known. Twice: rules add
        a fifth to the estimate.
    tolerable : accuracies by which two resolutions of the squared loss may differ in an answer that
        is "not settled", and the noise of real data from 1 where a surrogate cannot scale it. Half:
        more refusals. Twice: answers 10 % off, stated.
    tolerable_loss : relative difference of two resolutions that is let pass for other losses, whose
        squared errors differ most. Half: refusals at hinge losses with margins. Twice: answers
        open by a factor of two.
    squares : weight of differences of squared errors beside a loss of signs, which they are no
        measure of. Half: coarser rules for squared errors. Twice: finer ones that losses and signs
        do not need.
    least_loss : part of the test loss in units of which a training loss below it is compared: of
        separable data it is next to nothing. Half: such problems take finer rules and more layers.
        Twice: small training losses are known to fewer digits.
    fewest_degrees : samples left by the readout, m − df₂, below which no limit exists; half of the
        fewest rows of real data. Half: answers where one training set says nothing about the next.
        Twice: small problems near interpolation are refused.
    grouped_directions : special directions, or as many of them that need more than two nodes each,
        from which on directions that are alike are taken in groups; of different strengths, beyond
        which the spikes of a component count as one set. Half: groups where single axes
        would be exact. Twice: rules over eight axes, for seconds.
    most_directions : directions with an axis each beyond which types take seconds. Half: more
        problems are refused by types. Twice: they wait instead.
    uncounted : relative effect of uncounted degrees of freedom beyond which types refuse. Half:
        more refusals, and layers instead. Twice: answers up to 10 % off, stated.
    many_directions : special directions from which on each has not an axis of its own: rules over
        more are long. Half: more problems take directions in groups, whose overlaps are averaged
        by their lengths alone. Twice: rules over up to twenty axes, and minutes.

    Finite sizes (theory/size/finite_size.py), all relative to the errors:

    bound_at_rest : what is open in units of (1 + degrees of the mean part)/size where there is no
        1/n correction, without a step. Found by comparing random problems at n = 200 to 400 with
        simulations. Half: some of these were further off than stated. Twice: estimates of random
        features without a correction double.
    bound_by_step : what a large step adds to that. Half: as for `bound_at_rest`. Twice: estimates
        of other losses and many spikes double, and more problems draw layers.
    bound_of_losses : times that with other losses than the squared one (docs/book/losses.md). Half:
        hinge losses were further off than stated. Twice: their estimates double.
    of_correction : part of a 1/n correction that is open: its rule is coarse, and higher orders.
        Covers every number of notes/2026-11-finite-size.md, section 7. Half: two of these do not
        hold, and estimates are 0.9 times as large. Twice: 1.2 times; no answer moves (medians of
        15 quick frozen problems, as where a number of 15 is told below).
    of_chaos : what features that are not linear in the bulk leave, in units of their share over
        the bulk's dimension. Half: cubic activations were further off than stated. Twice: their
        estimates double.
    of_cumulants : part of what the features' cumulants do, of corrections above 5 %: they are taken
        to first order. Of a quartic polynomial at k/m = 0.9 they make +10 %, networks have +4 %.
        Half: that one is not covered. Twice: more than all of it is open.
    of_rows : what the rows of a large step, taken as isotropic, cost in units of their noise times
        n/m̃: ReLU loses 28 % of its training error where the noise says 79 %. Half: this one is not
        covered. Twice: more such problems draw layers.
    largest_correction : relative correction from which on there is no expansion, and none is made.
        Half: problems near interpolation have a bound instead. Twice: corrections by a factor of
        three, which do not converge.
    smallest_bulk : directions of the bulk that an expansion in their inverse needs. Half: tiny
        problems are corrected by series that do not converge. Twice: n = 20 has a bound instead.
    correction_nodes : nodes beyond which there is no correction: a second, growing with their cube.
        Half: many spikes have a bound instead. Twice: up to eight seconds.
    stretch : variance τ² of the random stretch of neurons by the second-order term of a step at
        which errors may be 25 % off. At 0.03 random problems with even activations were 3 to 10 %
        off, at 10 they were 25 % off. Half: twice that much is stated for small τ². Twice: half of
        it, which does not cover these.
    of_losses : `of_correction` of other losses than the squared one, which have the ratios of ridge
        regression at their curvature. Of 40 frozen problems none was off by more than 0.6 of its
        estimate at 0.3. Half: 0.7, and estimates are 0.8 times as large. Twice: 1.4 times.
    linear : fluctuation of the output over the test error up to which it follows linearly, for
        losses with kinks. Half: less of the variance between training sets is in the test error.
        Twice: more than simulations have.

    First layers as they are (theory/layers/any_layer.py, theory/size/finite_size.py):

    layer_rule : share of the difference between two rules for the projections, with one response
        for all nodes, that joins the estimate where the shorter one gives the responses. Half: 5 %
        of it. Twice: estimates of strong steps grow by a few percent of themselves.
    layer_spent : share of the remaining degrees of freedom that the mean part may use; beyond,
        layers refuse. At 0.52 errors were off by a factor of three. Half: more refusals. Twice:
        such answers.
    layer_beside : what special directions beside the axes leave, in units of their number over n'.
        Half: some problems of many spikes are not covered. Twice: their estimates double.
    layer_disagree : if two ways to compute a part of the 1/n correction differ by more than this,
        relative, none is made. Half: more bounds in its place. Twice: corrections 4 % off.
    layer_open : least relative error that is stated, also where no correction is known to be off.
        Half: smaller estimates, and more answers by layers. Twice: fewer of both.
    layer_correction : share of the 1/n correction stated as its error: clustered neurons, coarse
        nodes, higher orders. Half: a tenth of it. Twice: estimates of small layers double.

    Chance (theory/chance.py, theory/draws.py):

    step_chance : k times the variance, over b₀², that chance adds to preactivations along strong
        spikes, above which it is averaged over. Half: more variables, for 0.2 % of the errors.
        Twice: errors of 0.5 % are left.
    step_chance_of_many : the same of many directions taken in groups, above which types refuse:
        that cannot be averaged over. Up to 0.2 it changed errors of frozen problems by less than
        0.1 %. Half or twice: one problem of 847 draws layers or not.
    mean_known : part of the accuracy to which a mean over draws, over layers or over the rank of
        real data is wanted. Half: twice to four times the points and layers, and 4 estimates of 15
        are 0.5 to 0.8 times as large. Twice: 2 of 15 are 1.5 and 2 times as large, and one answer
        moves by 0.3 %.
    mean_beside : the same of points, part of what is open anyway. Half: more points, for an error
        that hardly counts. Twice: half of the estimate may come from the mean.
    points : most points of a mean over draws. Half: means over many overlaps are known half as
        well. Twice: up to twice the time.
    stated_points : quantile of Student's law to which the error of such a mean is stated, 95 % in
        all. Half the share beyond it: 4 estimates of 15 grow by 4 to 22 %, and 3 shrink because
        more points are taken. Twice the share: 7 of 15 are 4 to 19 % smaller, and one mean in ten
        is further off.

    Layers (predict/layers.py, predict/layer_means.py):

    layers : fewest first layers of a mean; half of them in a draft; its square at most for an error
        of classes. Half: standard errors of two layers say little. Twice: twice the time where
        layers hardly differ.
    layers_most : most first layers of a mean. Half: means over small layers, which differ most, are
        known to a few percent. Twice: `layers_work` ends them before.
    layers_work : operations for all layers with rough errors: about five seconds. Half: standard
        errors are 1.4 times as large where layers differ. Twice: ten seconds.
    layers_beside : `mean_beside` of layers, and of the ratio of errors to rough ones. Half: more
        layers. Twice: fewer, and their scatter is a fifth of what is open.
    ratio_floor : layer-to-layer scatter of the bias of rough errors, as a share of the bias: of
        few ratios it may be small by chance. Half: some ratios are further off than stated. Twice:
        more layers are solved for every node.
    stated : quantile of Student's law to which the mean over layers is stated, 99 % in all: one in
        a hundred is further off. With half the share beyond it estimates of means grow by a fifth,
        with twice the share they shrink by a sixth.

    Real data (predict/real_data.py, theory/layers/semi_parametric.py):

    rows : most rows taken as nodes; a third of them in a draft. Half: errors in 1/rows double
        before they are extrapolated. Twice: twice the time.
    rank : principal directions of each class, to begin with; at most 16 times as many, or all
        where they are fewer than 32 times. Half: one more doubling, and images that stay "not
        settled". Twice: one less, and slower where ten suffice.
    real_layers : fewest first layers; a draft has no more, or one from `layers_width` neurons on.
        Half: the scatter of two says little. Twice: twice the time.

    Curves (predict/curves.py):

    curve_points : points of a curve from which on some are interpolated. Half: curves of eight
        points are looked at, and all computed. Twice: curves of 20 points take twice as long.
    curve_nodes : points computed first; twice the intervals where that fails. Half: most curves
        fail the check and compute more. Twice: all of 20 points are computed.
    curve_draft_nodes : the same of drafts, which are to be known less well. Half: most curves of
        drafts fail the check. Twice: all of 20 points are computed, in twice the time.
    curve_most : part of the points; where more would be needed all are computed. Half: steep
        curves compute all sooner. Twice: interpolation where nearly all is computed.
    curve_misfit : accuracies by which a point may differ from what others say about it. Of 57
        curves of 20 points those within a quarter were wrong by 0.05 % at most between points.
        Half: more points are computed. Twice: errors of 0.1 %.
    curve_beside : the same, part of what the point states anyway. Half: curves of other losses
        compute more points. Twice: their interpolated points differ from computed ones by a fifth
        of their estimate.
    curve_between : relative error between points whose misfit was next to nothing: these 0.05 %.
        Half: not covered. Twice: hardly seen beside estimates of 1 %.
    """

    uncertain: float = 0.03
    layers_width: int = 1000
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

    points: int = 128
    stated_points: float = 0.975

    layers: int = 4
    layers_most: int = 64
    layers_work: float = 1.5e11
    layers_beside: float = 0.1
    ratio_floor: float = 0.2
    stated: float = 0.995

    rows: int = 6000
    rank: int = 10
    real_layers: int = 3

    curve_points: int = 16
    curve_nodes: int = 11
    curve_draft_nodes: int = 9
    curve_most: float = 0.75
    curve_misfit: float = 0.25
    curve_beside: float = 0.1
    curve_between: float = 5e-4
