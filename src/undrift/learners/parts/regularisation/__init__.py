"""For EWC, MAS and TWP: a quadratic penalty, and the gradients its importances are made of."""
