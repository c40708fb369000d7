"""Files, downloads, outputs and the process around them; no torch."""
