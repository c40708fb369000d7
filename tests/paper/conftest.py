import sys
from pathlib import Path

# The scripts of this folder find each other because it is on the path.
sys.path.append(str(Path(__file__).parents[2] / "experiments" / "paper"))
