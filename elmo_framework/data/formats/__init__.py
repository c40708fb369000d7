"""File formats that readers parse."""
