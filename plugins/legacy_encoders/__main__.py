"""Run the conversion of ELMoForManyLangs as `python -m plugins.legacy_encoders`."""

import sys

from .convert_many_langs import main

if __name__ == "__main__":
    sys.exit(main())
