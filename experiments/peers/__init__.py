"""The methods that noisewise is compared with, each run as it should be run."""
