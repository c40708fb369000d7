from .assembly import Assembly as Assembly
from .check import CheckResult as CheckResult
from .check import check_config as check_config
from .experiment import Experiment as Experiment
from .explain import Explainer as Explainer
from .explain import Explanation as Explanation
from .load_run import load as load
from .run_directory import RunDirectory as RunDirectory
