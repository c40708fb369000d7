from .neighbors import Neighbor as Neighbor
from .neighbors import Neighbors as Neighbors
from .neighbors import NeighborSearch as NeighborSearch
from .neighbors import Occurrence as Occurrence
from .neighbors import find_neighbors as find_neighbors
from .report import write_report as write_report
