import sys
from pathlib import Path

# The benchmarks are scripts: they find each other because their folder is on the path.
sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
