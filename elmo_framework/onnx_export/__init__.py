"""`elmo export --format onnx`: task models and biLMs that run without PyTorch."""
