"""Files of biLMs: bilm-tf's HDF5, our own, and published models."""
