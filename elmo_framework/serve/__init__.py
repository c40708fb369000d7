"""`elmo serve`: runs behind HTTP, and a page that shows their predictions."""
