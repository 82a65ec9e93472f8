"""Numbers as the page prints them."""

from benchmarks.quality.summary import Mean


def percent(value: float | None) -> str:
    """Return a share in percent, with a decimal where it is small.

    Examples
    --------
    >>> percent(0.713), percent(0.0312), percent(0.0), percent(None)
    ('71 %', '3.1 %', '0 %', '')
    """
    if value is None:
        return ""
    return f"{100 * value:.1f} %" if 0.0 < value < 0.0995 else f"{100 * value:.0f} %"


def signed(value: float | None) -> str:
    """Return a difference with its sign and three significant places after a 0.

    Examples
    --------
    >>> signed(-0.03214), signed(0.00042), signed(1.234), signed(0.0), signed(None)
    ('-0.0321', '+0.0004', '+1.23', '0', '')
    """
    if value is None:
        return ""
    if abs(value) < 5e-5:
        return "0"
    return f"{value:+.4f}" if abs(value) < 0.1 else f"{value:+.2f}"


def interval(mean: Mean | None) -> str:
    """Return a mean with its interval.

    Examples
    --------
    >>> interval(Mean(-0.03, -0.04, -0.02, 5)), interval(Mean(0.5, None, None, 1)), interval(None)
    ('-0.0300 [-0.0400, -0.0200]', '+0.50', '')
    """
    if mean is None:
        return ""
    if mean.low is None:
        return signed(mean.value)
    return f"{signed(mean.value)} [{signed(mean.low)}, {signed(mean.high)}]"
