"""The confidential side: the only code that touches real records. Exact counts leave it, for `privacy` only."""
