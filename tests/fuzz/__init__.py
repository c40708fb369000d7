"""Fuzzers: mutated configs, data, weights, runs and corpora (`make fuzz N=1000`)."""
