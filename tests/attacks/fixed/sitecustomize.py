"""Found first on the path of a command under test: puts `Fixed` in place of noise, also in its measuring process."""

import holder

import noisewise.privacy.measure

noisewise.privacy.measure.OpenDPNoise = holder.Fixed
