from .assembly import Assembly as Assembly
from .check import CheckResult as CheckResult
from .check import check_config as check_config
from .experiment import Experiment as Experiment
from .load_run import load as load
from .run_directory import RunDirectory as RunDirectory
