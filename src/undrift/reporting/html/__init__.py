"""The report as one HTML page: views of the records, a template, its style and its script."""
