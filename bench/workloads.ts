/** What is measured. The floor does the same work, with a plain `savefig` where the service captures a figure. */

export interface Workload {
  name: string;
  what: string;
  code: string;
  floorCode: string;
  /** Also measured with as many callers as there are cores. */
  inParallel: boolean;
  rounds: number;
  /** By each caller. */
  runsPerRound: number;
}

const GROUP_BY = `import numpy as np
import pandas as pd
frame = pd.DataFrame({"key": np.arange(100_000) % 97, "value": np.arange(100_000.0)})
print(frame.groupby("key")["value"].agg(["mean", "max"]).head())
`;

const PLOT = `import matplotlib.pyplot as plt
plt.plot([1, 3, 2, 4], label="a")
plt.title("A simple plot")
plt.legend()
`;

export const WORKLOADS: Workload[] = [
  {
    name: 'print',
    what: 'print(1)',
    code: 'print(1)',
    floorCode: 'print(1)',
    inParallel: true,
    rounds: 25,
    runsPerRound: 20,
  },
  {
    name: 'plot',
    what: 'a line with title and legend, as a PNG',
    code: `${PLOT}plt.show()\n`,
    floorCode: `${PLOT}import io\nplt.savefig(io.BytesIO(), dpi="figure")\n`,
    inParallel: false,
    rounds: 15,
    runsPerRound: 5,
  },
  {
    name: 'groupby',
    what: 'a group-by of 100,000 rows with pandas, printed',
    code: GROUP_BY,
    floorCode: GROUP_BY,
    inParallel: false,
    rounds: 15,
    runsPerRound: 5,
  },
];
