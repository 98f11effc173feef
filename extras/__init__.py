"""What joins undrift from a clone: `undrift results`, trackers, and a Dask engine."""
