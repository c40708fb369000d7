"""Tensors in, tensors out: the modules that the models are made of."""
