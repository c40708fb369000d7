"""Formats of other programs, translated to ours; only the commands import this package."""
