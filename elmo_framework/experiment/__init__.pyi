from .assembly import Assembly as Assembly
from .assembly import load as load
from .check import CheckResult as CheckResult
from .check import check_config as check_config
from .experiment import Experiment as Experiment
from .run_directory import RunDirectory as RunDirectory
