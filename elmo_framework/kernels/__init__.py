"""Fast CPU paths: C sources and what calls them, each with its PyTorch twin."""
