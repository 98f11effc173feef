"""The words of docs/privacy/attacks.md; its numbers are in attack_page.py."""

__all__ = [
    "ALL_ROWS",
    "CLASS_MEANS",
    "END",
    "INTRO",
    "KNOWN_ROWS",
    "MEMBERSHIP",
    "METHODS",
    "ROWS_SHOWN",
    "TWO_STATES",
    "WORDS",
]

INTRO = """
This page tries what a state shows. `undrift.privacy.attacks` reads what it can out of the sums
that a learner keeps. The page says how, and how well it did on four real graphs, seed 0. Every
number on it is made from [results/privacy/attacks.json](../../results/privacy/attacks.json).

**Who attacks.** The attacker holds a state file, or two of one learner. They know the code, the
seed and the settings, so they know every random map. They know the graph that a batch came with.
They can make the row of a node whose features they have, in the graph of its batch. They do not
know which nodes were learned, or what the features of some were. Members are training nodes. The
others are validation and test nodes of the same tasks. Their rows are made in the same graph in
the same way, so only membership separates them.

**What is attacked.** "3,072 columns" is the default method before it was attacked. "The default"
is `propagation` as it is now. R is the sum of products of a row with itself. Q is the sum of the
rows of each class. Every method says which sums it keeps (`Learner.inventory`). An inverse of R
counts as R. An audit says that it [did not judge](guards.md#what-the-audit-checks) what a method
does not name.
"""

CLASS_MEANS = """
A column of Q divided by the count of its class is the mean of the class's rows. For one row it is
the row. Formerly a second pair of sums was kept, over validation nodes. A class of five nodes had
one of them, so its row stood in the state as it was. Those sums are gone. The first table shows
them as they were. The cosine is that of the class's column with the nearest validation row,
without the direction that all classes share.

The class means of training rows are still kept. A class of one row is shown. From about five rows
on the mean is as near to a row as it is for a class of any size. It then shows what the class is
like.
"""

TWO_STATES = """
The difference of the states before and after a batch is the sum over the batch alone. The first
state is such a difference as well. With fewer rows than columns, the rows span a space in which
they are the sparsest vectors. The features of neighbours within the batch are sparse there too,
because rows are mixed from them. `attack_methods.sparse_rows` looks for words that one node has
alone, and for sparse vectors by soft thresholds. A node counts as read out if its row or its own
features have a cosine of 0.99 or more with one of the vectors found. Then all its words are
known. Numbers are means of two draws. The batch is one class with the edges between its nodes.
"""

KNOWN_ROWS = """
Dense features have no sparse form. But R and Q determine the unknown rows of a batch up to a
rotation. It has one dimension less than there are unknown rows. Every row that the attacker knows
removes one dimension (`known_rows`). One or two unknown rows are found exactly, whatever the
features.
"""

MEMBERSHIP = """
The question is whether a row is in the sum. With fewer rows than columns, a row lies in the span
of R only if it was summed, or is a mix of rows that were. With more rows, a member has a lower
leverage than it would have otherwise. What is unusual about the row itself can be divided out
("normalised leverage"). "Unexplained" is for sums that are seen through a few directions: a
regression of rows on what was seen of them fits members better. "Own class" is either of the two
around the mean of the row's class, which the attacker must know for it. "At 1 %" is the share of
members found when one in a hundred others is accused wrongly. There are some hundreds of others,
so "at 0.1 %" means accusing none or one.
"""

ALL_ROWS = """
An attacker may hold the rows of everybody who may have been learned. Then they need not look at
one row at a time. They ask which of the rows add up to R. This is linear regression, with one
unknown per candidate and an equation for each number that is kept. N candidates can be separated
as soon as about N numbers are kept. So **no useful width is safe from it**: 64 columns are 2,080
numbers. Whoever has all the data of a batch can tell who was learned. Only noise, or fewer numbers
than nodes, changes that. In practice attackers seldom have all of it, which helps:
"""

WORDS = """
The attacker knows a node except for one of its words. They have 16 words to choose from, drawn as
often as nodes have them. A guess is right in 6 %. The attack chooses the word that makes the row
look most like a member. For nodes that were not learned, the share says what any model of the data
shows. What is above that share comes from the sum. The attack was tried on 16 nodes of either
kind, so a share is known to some 12 points.
"""

METHODS = """
These are the same attacks on the states of other methods, on CoraML with their default settings,
after the whole stream. Encoders that move made the rows of earlier tasks with weights that are
gone. So candidates are those of the last task there. ADR's first layer reads the features
themselves and needs no weights. POLO keeps means and radii, no products. The last column is the
baseline. It says how far the weights alone separate members of the last task, by how sure they
are of a node's class.
"""

END = """```python
from undrift.privacy.attacks import attack_state, predicted

for finding in attack_state(learner, tasks):   # the batches as they were observed
    print(finding.where, finding.attack, finding.text)
for finding in predicted(learner):             # without any data: from counts
    print(finding)
```

`python -m paper attacks results/privacy/attacks.json` measures this page again. `--again now`
measures only the present default. What an attack does not find is not safe for that reason. These
are the attacks that we could think of."""

ROWS_SHOWN = (
    "From the left: the share of a batch read out of two states, by its nodes and by columns of "
    "the sums; the cosine of a class's mean with a row of it; membership by the share of rows held"
)
