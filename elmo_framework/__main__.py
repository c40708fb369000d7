"""`python -m elmo_framework`, the same as `elmo`."""

import sys

from elmo_framework.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
