"""Fast CPU kernels in C and their callers, each with an equivalent in PyTorch."""
