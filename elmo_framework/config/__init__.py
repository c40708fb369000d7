"""From a config file to objects: signatures, checks, building, plugins."""
