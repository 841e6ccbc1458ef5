"""Speed and memory, alternatives side by side in one run. Each file is run with `python -m benchmarks.NAME`."""
