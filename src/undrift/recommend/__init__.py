"""Recommendation from sums: rows are sessions, columns are items.

Read it in this order: `interactions` (a table becomes sessions), `sums` (what is kept of them),
`base` (the verbs), `solve` (from sums to scores), `next_item` (the two methods), `baselines`,
`stream` (sessions by period). Each name is imported when first asked for.
"""

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from undrift.recommend.base import Recommender as Recommender
    from undrift.recommend.baselines import ItemKnn as ItemKnn
    from undrift.recommend.baselines import LastItem as LastItem
    from undrift.recommend.baselines import Popularity as Popularity
    from undrift.recommend.interactions import Histories as Histories
    from undrift.recommend.interactions import Interactions as Interactions
    from undrift.recommend.interactions import as_interactions as as_interactions
    from undrift.recommend.next_item import Ease as Ease
    from undrift.recommend.next_item import NextItem as NextItem
    from undrift.recommend.stream import SessionStream as SessionStream

__all__, __dir__, __getattr__ = imported_late(__name__)
