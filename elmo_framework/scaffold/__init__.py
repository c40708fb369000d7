"""What `elmo new` writes: configs for data files, the shipped configs, and packages of plugins."""
