"""Configs of AllenNLP 0.8 to 2.10, translated to ours."""
