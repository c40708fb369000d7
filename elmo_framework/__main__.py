"""`python -m elmo_framework`, the same as `elmo`."""

import sys

from elmo_framework.io.search_path import leave_current_folder

if __name__ == "__main__":
    leave_current_folder()
    # Not earlier: what follows imports much that a file in the current folder could replace.
    from elmo_framework.commands.main import main

    sys.exit(main())
