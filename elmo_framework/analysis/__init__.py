"""`elmo report` and `elmo neighbors`."""
