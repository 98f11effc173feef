"""Recommendation from sums: rows are sessions, columns are items.

Read it in this order: `interactions` (a table becomes sessions), `sums` (what is kept of them),
`base` (the verbs), `solve` (from sums to scores), `next_item` (the two methods).
"""

from undrift.recommend.base import Recommender as Recommender
from undrift.recommend.interactions import Histories as Histories
from undrift.recommend.interactions import Interactions as Interactions
from undrift.recommend.interactions import as_interactions as as_interactions
from undrift.recommend.next_item import Ease as Ease
from undrift.recommend.next_item import NextItem as NextItem
