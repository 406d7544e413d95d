"""How many tills does a shop need? Simulates its queue for several numbers of tills and plots the waiting times.

Customers arrive at random and join one queue; each till serves the one who has waited longest. The parameters
are JSON on stdin. The same seed gives the same result, and every number of tills meets the same customers.
"""

import heapq
import json
import sys
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np


@dataclass(frozen=True)
class Shop:
    customers_per_hour: float
    service_minutes: float
    open_hours: float
    tills: list[int]
    days: int
    seed: int


def customers_of_a_day(shop: Shop, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """When the customers of one day arrive, and how long each takes at the till, in minutes."""
    open_minutes = shop.open_hours * 60
    count = random.poisson(shop.customers_per_hour * shop.open_hours)
    arrivals = np.sort(random.uniform(0, open_minutes, count))
    return arrivals, random.exponential(shop.service_minutes, count)


def waits_of_a_day(arrivals: np.ndarray, services: np.ndarray, tills: int) -> list[float]:
    """How long each customer waits, in minutes."""
    free_at = [0.0] * tills
    waits = []
    for arrival, service in zip(arrivals.tolist(), services.tolist(), strict=True):
        start = max(arrival, heapq.heappop(free_at))
        waits.append(start - arrival)
        heapq.heappush(free_at, start + service)
    return waits


def simulate(shop: Shop) -> dict[int, np.ndarray]:
    """The waiting times of all customers, by number of tills."""
    random = np.random.default_rng(shop.seed)
    days = [customers_of_a_day(shop, random) for _ in range(shop.days)]
    return {
        tills: np.concatenate([waits_of_a_day(*day, tills) for day in days]) for tills in shop.tills
    }


def plot(waits: dict[int, np.ndarray]) -> None:
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for tills, minutes in waits.items():
        ordered = np.sort(minutes)
        axes.plot(ordered, np.linspace(100, 0, len(ordered)), label=f"{tills} tills")
    axes.set(
        title="Customers who wait longer than …",
        xlabel="minutes",
        ylabel="% of customers",
        xlim=(0, 20),
        ylim=(0, 100),
    )
    axes.grid(alpha=0.3)
    axes.legend()
    plt.show()


shop = Shop(**json.load(sys.stdin))
waits = simulate(shop)

print(f"{shop.days} days, {len(next(iter(waits.values())))} customers")
print("tills  mean wait  95 % wait less than  longer than 5 min")
for tills, minutes in waits.items():
    late = np.mean(minutes > 5)
    print(f"{tills:5}  {minutes.mean():5.1f} min  {np.percentile(minutes, 95):15.1f} min  {late:17.1%}")
plot(waits)

enough = [tills for tills, minutes in waits.items() if np.percentile(minutes, 95) <= 5]
if enough:
    print(f"{min(enough)} tills are enough for 19 of 20 customers to wait 5 minutes at most")
else:
    print("none of these is enough for 19 of 20 customers to wait 5 minutes at most")
