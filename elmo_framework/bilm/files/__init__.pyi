from .load import BiLmFiles as BiLmFiles
from .load import bilm_files as bilm_files
from .load import read_bilm as read_bilm
from .load import save_bilm as save_bilm
from .published import resolve_bilm as resolve_bilm
from .weights_report import WeightsReport as WeightsReport
from .weights_report import inspect_weights as inspect_weights
