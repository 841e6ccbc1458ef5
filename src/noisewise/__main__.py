"""`python -m noisewise`."""

from noisewise.cli import main

main()
