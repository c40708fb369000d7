from .archival import Archive as Archive
from .archival import load_archive as load_archive
