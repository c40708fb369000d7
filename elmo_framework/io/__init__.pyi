from .files import replacing as replacing
