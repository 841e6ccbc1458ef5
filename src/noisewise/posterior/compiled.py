"""Compiled code is kept from one process to the next, in the user's cache folder.

It holds what the compiler made of shapes, nothing of the data. A folder for each machine: the code is made for its
processor. Whoever sets `JAX_COMPILATION_CACHE_DIR` decides for themselves.
"""

import os
import platform
from pathlib import Path
from typing import Any

import jax


def keep_compiled() -> None:
    """Use the folder, if there is none yet and it can be made."""
    settings: Any = jax.config
    if settings.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(home) / "noisewise" / f"compiled-{platform.node()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return  # then every process compiles
        settings.update("jax_compilation_cache_dir", str(folder))
