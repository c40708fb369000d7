"""Imported once by the process that workers are forked from, so that none has to import it."""

import torch.utils.tensorboard  # noqa: F401
from torch import nn

from elmo_framework import components
from elmo_framework.study import job  # noqa: F401

components.load()
# Without memory for weights, as `check_config` builds models, PyTorch imports a thousand modules.
nn.Embedding(1, 1, device="meta")
