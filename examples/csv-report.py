"""Analyses a CSV of sales from stdin: cleans it, says what it left out, prints and plots revenue by month.

The value of the last expression is the table, so that a caller gets it as JSON and HTML too.
"""

import sys

import matplotlib.pyplot as plt
import pandas as pd


def read_sales(stream) -> tuple[pd.DataFrame, dict[str, int]]:
    """The usable rows, and how many were left out for which reason."""
    raw = pd.read_csv(stream, dtype=str)
    sales = pd.DataFrame(
        {
            "date": pd.to_datetime(raw["date"], format="%Y-%m-%d", errors="coerce"),
            "region": raw["region"].str.strip().str.title(),
            "product": raw["product"].str.strip(),
            "units": pd.to_numeric(raw["units"], errors="coerce"),
            "unit_price": pd.to_numeric(raw["unit_price"], errors="coerce"),
        }
    )
    repeated = sales.duplicated()
    incomplete = sales.isna().any(axis=1)
    left_out = {"repeated": int(repeated.sum()), "incomplete": int((incomplete & ~repeated).sum())}
    sales = sales[~repeated & ~incomplete]
    return sales.assign(revenue=sales["units"] * sales["unit_price"]), left_out


def revenue_by_month(sales: pd.DataFrame) -> pd.DataFrame:
    """A row for each month, a column for each region, and the total."""
    month = sales["date"].dt.strftime("%Y-%m").rename("month")
    table = sales.pivot_table(
        index=month, columns="region", values="revenue", aggfunc="sum", fill_value=0
    )
    return table.assign(Total=table.sum(axis=1)).rename_axis(columns=None).round(2)


def plot(table: pd.DataFrame, products: pd.Series) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    table.drop(columns="Total").plot.bar(stacked=True, ax=left, rot=0, width=0.8)
    left.set(title="Revenue by month and region", xlabel="", ylabel="EUR")
    products.sort_values().plot.barh(ax=right, color="tab:gray")
    right.set(title="Revenue by product", xlabel="EUR", ylabel="")
    figure.savefig("sales.png")


sales, left_out = read_sales(sys.stdin)
table = revenue_by_month(sales)
products = sales.groupby("product")["revenue"].sum()
best = table["Total"].idxmax()

print(f"rows used: {len(sales)}, left out: {left_out['repeated']} repeated, {left_out['incomplete']} incomplete")
print(f"revenue: {table['Total'].sum():,.2f} EUR")
print(f"best month: {best} with {table.loc[best, 'Total']:,.2f} EUR")
print(f"best product: {products.idxmax()} with {products.max():,.2f} EUR")
plot(table, products)
table
