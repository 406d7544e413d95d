"""Fits electricity demand to temperature: polynomials of several degrees, compared by cross-validation.

The CSV on stdin has columns temperature_c and demand_mwh. A quarter of the rows is kept aside, and says at the end
what the chosen model is worth on days that it has not seen.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import KFold, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

DEGREES = range(1, 7)
SEED = 3


def polynomial(degree: int) -> Pipeline:
    return make_pipeline(
        StandardScaler(), PolynomialFeatures(degree, include_bias=False), LinearRegression()
    )


def errors_by_degree(temperature: pd.DataFrame, demand: pd.Series) -> pd.Series:
    """The mean absolute error of each degree, in MWh, on the folds left out."""
    folds = KFold(n_splits=5, shuffle=True, random_state=SEED)
    errors = {
        degree: -cross_val_score(
            polynomial(degree), temperature, demand, cv=folds, scoring="neg_mean_absolute_error"
        ).mean()
        for degree in DEGREES
    }
    return pd.Series(errors, name="error_mwh").rename_axis("degree")


def simplest_good(errors: pd.Series) -> int:
    """The lowest degree that is no more than 2 % worse than the best: more would fit the noise."""
    return int(errors[errors <= errors.min() * 1.02].index.min())


def plot(data: pd.DataFrame, model: Pipeline, degree: int) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    low, high = data["temperature_c"].min(), data["temperature_c"].max()
    grid = pd.DataFrame({"temperature_c": np.linspace(low, high, 200)})
    left.scatter(data["temperature_c"], data["demand_mwh"], s=12, alpha=0.6, label="days")
    left.plot(grid["temperature_c"], model.predict(grid), color="tab:red", label=f"degree {degree}")
    left.set(title="Demand by temperature", xlabel="°C", ylabel="MWh")
    left.legend()
    right.axhline(0, color="tab:red")
    residuals = data["demand_mwh"] - model.predict(data[["temperature_c"]])
    right.scatter(data["temperature_c"], residuals, s=12, alpha=0.6)
    right.set(title="What the fit leaves over", xlabel="°C", ylabel="MWh")
    plt.show()


data = pd.read_csv(sys.stdin)
seen, unseen = train_test_split(data, test_size=0.25, random_state=SEED)

errors = errors_by_degree(seen[["temperature_c"]], seen["demand_mwh"])
degree = simplest_good(errors)
model = polynomial(degree).fit(seen[["temperature_c"]], seen["demand_mwh"])
predicted = model.predict(unseen[["temperature_c"]])

for each, error in errors.items():
    print(f"degree {each}: mean error {error:5.2f} MWh{'  <- chosen' if each == degree else ''}")
print(f"on {len(unseen)} days kept aside: mean error {mean_absolute_error(unseen['demand_mwh'], predicted):.2f} MWh, "
      f"R² {r2_score(unseen['demand_mwh'], predicted):.3f}")
plot(data, model, degree)
