from .predictor import Predictor as Predictor
