"""The version, apart from all else, so that it can be read without an import of the rest."""

VERSION = "0.1.0"
