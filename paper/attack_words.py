"""The words of docs/privacy/attacks.md; its numbers are in attack_page.py."""

from __future__ import annotations

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
What a state gives away is not asserted here but tried. `undrift.privacy.attacks` reads what it
can out of the sums that a learner keeps; this page says how, and how well it did on four real
graphs, seed 0. Every number on it is made from
[results/privacy/attacks.json](../../results/privacy/attacks.json).

**Who attacks.** Somebody who holds a state file, or two of one learner, and knows the code, the
seed and the settings, so that every random map is theirs too. They know the graph that a batch
came with, and can make the row of a node whose features they have, in the graph of its batch.
They do not know which nodes were learned from, or what the features of some were. Members are
training nodes, the others are validation and test nodes of the same tasks: their rows are made in
the same graph in the same way, so that what tells them apart is membership and nothing else.

**What is attacked.** "3,072 columns" is the default method as it was before it was attacked; "the
default" is what `propagation` is now. R is the sum of products of a row with itself, Q the sum of
the rows of each class. Every method says which sums it keeps (`Learner.inventory`), and an
inverse of R counts as R. Of what a method does not name, an audit says that it was
[not judged](guards.md#what-the-audit-checks).
"""

CLASS_MEANS = """
A column of Q over the count of its class is the mean of the class's rows, and of one row it is
the row. Until this was tried, a second pair of sums was kept, over validation nodes: a class of
five nodes had one of them, so that its row stood in the state as it was. Those sums are gone. The
first table shows them as they were; the cosine is that of the class's column with the nearest
validation row, without the direction that all classes share.

What is left are the class means of training rows. A class of one row is given away. From some
five rows on the mean is as near to a row as it is for a class of any size: what it tells is what
the class is like.
"""

TWO_STATES = """
The difference of the states before and after a batch is the sum over the batch alone, and the
first state is such a difference as well. With fewer rows than columns, the rows span a space in
which they are the sparsest vectors; so are the features of neighbours within the batch, of which
rows are mixed. `gram_difference.sparse_rows` looks for words that one node has alone, and for
sparse vectors by soft thresholds. A node counts as read out where its row or its own features
have a cosine of 0.99 or more with one of the vectors found: then its words are known, all of
them. Means of two draws; the batch is one class with the edges between its nodes.
"""

KNOWN_ROWS = """
Dense features have no sparse form. But R and Q fix the unknown rows of a batch up to a rotation,
of one dimension less than there are unknown rows, and every row that the attacker knows takes one
dimension off it (`known_rows`). One or two unknown rows are found exactly, whatever the features.
"""

MEMBERSHIP = """
Is this row in the sum? With fewer rows than columns, a row lies in the span of R only if it was
summed, or is a mix of rows that were. With more, a member has a lower leverage than it would have
otherwise, and what is unusual about the row itself can be divided out ("normalised leverage").
"Unexplained" is for sums that are seen through a few directions: the regression of rows on what
was seen of them fits members better. "Own class" is either of the two around the mean of the
row's class, which the attacker must know for it. "At 1 %" is the share of members found when one
in a hundred others is accused wrongly; with some hundreds of others, "at 0.1 %" means accusing
none or one.
"""

ALL_ROWS = """
An attacker who holds the rows of everybody who may have been learned from need not look at one at
a time: which of them add up to R? That is linear regression, with one unknown per candidate and
an equation for each number that is kept. N candidates can be told apart as soon as about N
numbers are kept, so **no width that is of use is safe from it**: 64 columns are 2,080 numbers.
Whoever has all the data of a batch can tell who was learned from; only noise, or fewer numbers
than nodes, changes that. What helps in practice is that they seldom have all of it:
"""

WORDS = """
The attacker knows a node but for one of its words, and has 16 words to choose from, drawn as
often as nodes have them; a guess is right in 6 %. The word is chosen that makes the row look most
like a member. For nodes that were not learned from the share says what any model of the data
tells; what is above it was given away by the sum. Tried on 16 nodes of either kind, so a share is
known to some 12 points.
"""

METHODS = """
The same attacks on the states of other methods, on CoraML with their default settings, after the
whole stream. Encoders that move have made the rows of earlier tasks with weights that are gone,
so candidates are those of the last task there; ADR's first layer reads the features themselves
and needs no weights. POLO keeps means and radii, no products. The last column is the baseline:
how far the weights alone tell members of the last task apart, by how sure they are of a node's
class.
"""

END = """```python
from undrift.privacy.attacks import attack_state, predicted

for finding in attack_state(learner, tasks):   # the batches as they were observed
    print(finding.where, finding.attack, finding.told)
for finding in predicted(learner):             # without any data: from counts
    print(finding)
```

`python -m paper attacks results/privacy/attacks.json` measures this page again; `--again now`
only the default as it is now. What an attack does not find is not thereby safe: these are the
attacks that we could think of."""

ROWS_SHOWN = (
    "From the left: the share of a batch read out of two states, by its nodes and by columns of "
    "the bank; the cosine of a class's mean with a row of it; membership by the share of rows held"
)
