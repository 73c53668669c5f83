"""The Precision page: what few bits change in every layer and head, outlier channels, loss, needles and true bytes."""
