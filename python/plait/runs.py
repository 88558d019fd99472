"""Runs of a step, and how far the results of two are from each other."""


def is_key(leaf):
    import jax
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def largest_difference(ours, theirs):
    import jax
    import numpy
    worst = 0.0
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
        if is_key(a):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        a, b = numpy.asarray(a, numpy.float64), numpy.asarray(b, numpy.float64)
        scale = max(numpy.abs(b).max(initial=0.0), 1e-30)
        worst = max(worst, float(numpy.abs(a - b).max(initial=0.0)) / scale)
    return worst


def _rounding(step, arguments):
    """The largest rounding of a type that the step computes in, relative; 0 where each has its own."""
    import jax
    text = jax.jit(step).lower(*arguments).as_text()
    return 2.0**-8 if "xbf16>" in text else 2.0**-10 if "xf16>" in text else 0.0


def _rounded_otherwise(arguments, rounding):
    """The arguments with numbers that differ by one rounding: up, down or not at all."""
    import jax
    import numpy
    random = numpy.random.default_rng(0)

    def changed(leaf):
        if is_key(leaf) or not jax.numpy.issubdtype(jax.numpy.result_type(leaf), jax.numpy.floating):
            return leaf
        own = float(jax.numpy.finfo(jax.numpy.result_type(leaf)).eps)
        values = numpy.asarray(leaf)
        factor = 1 + max(own, rounding) * random.integers(-1, 2, values.shape)
        return (values.astype(numpy.float64) * factor).astype(values.dtype)
    return jax.tree.map(changed, jax.device_get(arguments))


def own_difference(step, arguments, steps, expected):
    """How far the results of one device move when its arguments are rounded otherwise: a plan cannot be
    expected to be nearer. Large where 16 bits are computed with, or where Adam divides tiny gradients."""
    import jax
    arguments = _rounded_otherwise(arguments, _rounding(step, arguments))
    moved = run_steps(jax.jit(step), arguments, steps)
    return largest_difference(moved, expected)


def run_steps(function, arguments, steps, place=lambda given: given):
    """What the last of some steps gives; the new state is fed back as the first argument where a step
    gives one. `place` puts the arguments where the function wants them."""
    import jax
    given = list(jax.device_get(arguments))  # what is given up must not be gone for another run
    for _ in range(steps):
        result = function(*place(tuple(given)))
        state = result[0] if isinstance(result, tuple) else result
        if jax.tree.structure(state) == jax.tree.structure(given[0]):
            given[0] = jax.device_get(state)
    return jax.device_get(result)
