"""What a release would be like, computed from public facts alone: what a data officer signs off."""

from noisewise.planning.plan import Plan, Rehearsal, plan

__all__ = ["Plan", "Rehearsal", "plan"]
