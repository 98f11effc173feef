"""For ADR, ADR+, ACIL, DS-AL and DPCR: adapted and frozen encoders, class balance, drift."""
