from .cached_layers import CachedLayers as CachedLayers
from .layer_cache import LayerCache as LayerCache
