"""An analyst's session with the light install (pip install noisewise): python analyst.py RELEASE FOLDER.

RELEASE is the folder or zip file that the data holder published; FOLDER is where the datasets go as CSV files.
"""

import sys

from noisewise import analyze, glm, read_release, synthesize
from noisewise.exports import Csv, export

release = read_release(sys.argv[1])
manifest = release.manifest()

# Twenty datasets more than were published. With the release's own seed the first ones are the published ones again, and
# each new one comes from a draw of the posterior that was not used yet.
made = manifest.synthesis
datasets = synthesize(release.posterior(), made.datasets + 20, rows=made.rows, seed=made.seed)

for intended in manifest.analyses:  # or a formula of your own
    pooled = analyze(datasets, glm(intended["formula"], family=intended["model"]))
    print(pooled.summary())
    print(pooled.summary_frame().to_csv(index=False))

export(datasets, sys.argv[2], Csv())
