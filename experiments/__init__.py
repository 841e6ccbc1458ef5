"""The published experiments, rerun with the methods they compare. Not part of the installed package.

Linear algebra gets one thread per process, which has to be said before it is loaded: matrices here are small, and
processes are what runs side by side.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
