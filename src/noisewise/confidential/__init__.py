"""The confidential side: the only code that touches real records. What leaves it is exact counts, for `privacy` only."""
