"""Imported once by the process that workers are forked from, so that none has to import it."""

from elmo_framework import components
from elmo_framework.study import job  # noqa: F401

components.load()
