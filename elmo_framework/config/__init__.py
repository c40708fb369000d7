"""Load, check and build configurations: signatures, registry, plugins."""
