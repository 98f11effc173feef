"""Slow, obvious twins of every fast path: graphs, propagation, ridge regression, metrics.

Dense matrices, loops over nodes, refitting; nothing is shared with what must equal them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import torch
from torch import Tensor


def dense_operator(adjacency: Tensor, kind: str, *, self_loops: bool = True) -> Tensor:
    """The twin of `normalise`, entry by entry, in float64.

    `adjacency[i, j]` is the weight of what j sends to i. `symmetric` divides an entry by the roots
    of the degrees into i and out of j, `row` by the degree into i, `sum` by nothing.
    """
    if kind not in ("symmetric", "row", "sum"):
        raise ValueError(f"no twin for normalisation {kind!r}")
    n = adjacency.shape[0]
    weights = (adjacency + torch.eye(n, dtype=adjacency.dtype) * self_loops).tolist()
    into, out = list(map(sum, weights)), list(map(sum, zip(*weights, strict=True)))
    operator = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            if weights[i][j] == 0.0:
                continue  # nothing is sent: a degree of zero is never divided by
            by = {"symmetric": into[i] ** 0.5 * out[j] ** 0.5, "row": into[i], "sum": 1.0}
            operator[i, j] = weights[i][j] / by[kind]
    return operator


def dense_attention(edges: Tensor, sent: Tensor, received: Tensor, slope: float = 0.2) -> Tensor:
    """The twin of `attention`: `alpha[i, j]` of what j sends to i, row by row, with a gradient."""
    rows = []
    for linked, mine in zip(edges, received, strict=True):
        total = sent + mine
        scores = torch.where(total > 0, total, slope * total)
        powers = torch.where(linked, torch.exp(scores), 0.0)
        rows.append(powers / powers.sum())
    return torch.stack(rows)


def dense_receptive_field(adjacency: Tensor, nodes: Iterable[int], hops: int) -> set[int]:
    """Every node whose features reach `nodes` within `hops` steps, the nodes themselves too."""
    reached, links = {int(node) for node in nodes}, adjacency.tolist()
    for _ in range(hops):
        reached |= {j for i in reached for j, weight in enumerate(links[i]) if weight != 0}
    return reached


def k_hop_forward(
    operators: Sequence[Tensor], features: Tensor, weights: Sequence[Tensor]
) -> Tensor:
    """`h = relu(A_k h W_k)` for k = 1..K, over all nodes: the twin of `receptive_field`'s hops."""
    h = features
    for operator, weight in zip(operators, weights, strict=True):
        h = torch.relu(operator @ h @ weight)
    return h


def hop_weights(
    features: Tensor,
    adjacency: Tensor,
    mix: str = "adaptive",
    hops: int = 8,
    evidence_threshold: float = 1e4,
    homophily: float = 1.0,
) -> Tensor:
    """`[hops + 1, nodes]`, node by node: the twin of `Propagated.weights_at`."""
    n, links = features.shape[0], adjacency.tolist()
    linked = [[j for j in range(n) if links[i][j] != 0] for i in range(n)]
    rows = features.double()
    reached = [
        float(row.abs().sum() ** 2 / row.square().sum()) if row.any() else 0.0 for row in rows
    ]
    weights = torch.ones(hops + 1, n, dtype=torch.float64)
    for k in range(hops + 1):
        for i in range(n):
            damped = homophily**k
            if mix == "separate":
                damped = 2.0 if k else 1.0
            elif mix == "hop":
                damped *= k == hops
            elif mix == "adaptive" and k:
                damped *= max(0.0, 1 - reached[i] / evidence_threshold)
                damped *= damped >= 1e-3
            weights[k, i] = damped
        if k:
            reached = [reached[i] + sum(reached[j] for j in linked[i]) for i in range(n)]
    return weights


def propagated_features(
    features: Tensor, adjacency: Tensor, mix: str = "adaptive", hops: int = 8, **settings: float
) -> Tensor:
    """The twin of `Propagated.rows`, every hop a power of a dense matrix, in float64."""
    apart = mix == "separate"
    kind = "row" if apart else "symmetric"
    operator = dense_operator(adjacency.double(), kind, self_loops=not apart)
    hop = torch.stack([_unit(row) for row in features.double()])
    parts = []
    for weight in hop_weights(features, adjacency, mix, hops, **settings):
        parts.append(weight.unsqueeze(1) * hop)
        hop = operator @ hop
    side_by_side = apart or mix == "concat"
    mixed = torch.cat(parts, dim=1) if side_by_side else torch.stack(parts).sum(dim=0)
    return torch.stack([_unit(row) for row in mixed])


def balanced_joint_ridge(
    rows: Tensor, targets: Tensor, gamma: float, *, prior_rows: float = 20.0
) -> Tensor:
    """Class-balanced ridge on all rows at once; gamma relative to the mean diagonal.

    Every class is given the deviations of all rows from their class means, each column stretched
    to the class's own spread (shrunk towards that of all as by `prior_rows` rows), around its mean.
    """
    x, labels = rows.double(), targets.argmax(dim=1)
    classes = labels.unique().tolist()
    means = {c: x[labels == c].mean(dim=0) for c in classes}
    deviations = torch.stack([row - means[int(c)] for row, c in zip(x, labels, strict=True)])
    pooled = deviations.square().mean(dim=0)
    made, wanted = [], []
    for c in classes:
        mine = deviations[labels == c]
        share = len(mine) / (len(mine) + prior_rows)
        varies = pooled > 1e-12 * x.square().mean(dim=0)
        relative = mine.square().mean(dim=0) / torch.where(varies, pooled, 1.0)
        stretch = torch.where(varies, share * relative + 1 - share, 1.0).sqrt()
        made.append(means[c] + stretch * deviations)
        wanted.append(torch.eye(targets.shape[1], dtype=torch.float64)[c].expand(len(x), -1))
    weights = torch.full((len(x) * len(classes),), 1 / len(x), dtype=torch.float64)
    stacked = torch.cat(made)
    diagonal = (stacked.square() * weights.unsqueeze(1)).sum(dim=0)
    return joint_ridge(stacked, torch.cat(wanted), gamma * float(diagonal.mean()), weights)


def thin_joint_ridge(
    rows: Tensor, targets: Tensor, directions: Tensor, gamma: float
) -> tuple[Tensor, float]:
    """W of `ThinSums.balanced` and its degrees of freedom, with all rows and d x d matrices kept.

    The covariance within classes is replaced by its Nystroem matrix on these directions with the
    true diagonal, each column stretched by its share in the means of the classes.
    """
    x, y = rows.double(), targets.double()
    counts = y.sum(dim=0)
    means = (x.T @ y) / counts
    deviations = x - y @ means.T
    within = deviations.T @ deviations
    seen = within @ directions
    low = seen @ torch.linalg.pinv(directions.T @ seen, hermitian=True, rtol=1e-12) @ seen.T
    low = low - torch.diag(low.diagonal()) + torch.diag(within.diagonal())
    n, size = len(x), means.abs()
    stretch = (size.sum(dim=1) / (size @ counts / n) / n).sqrt()
    gram = low * torch.outer(stretch, stretch) + means @ means.T
    system = gram + gamma * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.float64)
    every = (low + (means * counts) @ means.T) * (y.shape[1] / n)
    return torch.linalg.solve(system, means), float(torch.linalg.solve(system, every).trace())


def cross_validated(rows: Tensor, targets: Tensor, ridge: float) -> float:
    """The generalised cross-validation error, with the hat matrix formed."""
    x, y = rows.double(), targets.double()
    n, d = x.shape
    system = x.T @ x + ridge * torch.eye(d, dtype=torch.float64)
    hat = x @ torch.linalg.solve(system, x.T)
    left = 1 - float(hat.trace()) / n
    return float((y - hat @ y).square().sum()) / left**2


def _unit(row: Tensor) -> Tensor:
    length = row.norm()
    return row / length if float(length) > 0 else row


def joint_ridge(
    rows: Tensor, targets: Tensor, gamma: float, weights: Tensor | None = None
) -> Tensor:
    """The ridge solution as least squares, `[sqrt(w) X; sqrt(gamma) I] W = [sqrt(w) Y; 0]`.

    No Gram matrix is ever formed, so this shares no rounding with the fast path.
    """
    x, y = rows.double(), targets.double()
    if weights is not None:
        root = weights.double().sqrt().unsqueeze(1)
        x, y = root * x, root * y
    d = x.shape[1]
    eye = gamma**0.5 * torch.eye(d, dtype=torch.float64)
    stacked = torch.cat([x, eye])
    wanted = torch.cat([y, torch.zeros(d, y.shape[1], dtype=torch.float64)])
    q, r = torch.linalg.qr(stacked)
    solution: Tensor = torch.linalg.solve_triangular(r, q.T @ wanted, upper=True)
    return solution


def merged_layer(inputs: list[Tensor], weights: list[Tensor], gamma: float) -> Tensor:
    """One merged layer from all stacked rows: eq. 6 as it is written."""
    hats = torch.cat([h.double() for h in inputs])
    outputs = torch.cat([h.double() @ w.double() for h, w in zip(inputs, weights, strict=True)])
    return joint_ridge(hats, outputs, gamma)


def blockwise_recursion(batches: list[tuple[Tensor, Tensor]], gamma: float) -> Tensor:
    """ACIL's published recursion, batch by batch; a batch may bring new target columns.

    From `R = I / gamma`: `K = (I + X R X^T)^-1`, `R <- R - R X^T K X R`,
    `W <- W + R X^T (Y - X W)`.
    """
    d = batches[0][0].shape[1]
    inverse = torch.eye(d, dtype=torch.float64) / gamma
    weights = torch.zeros(d, 0, dtype=torch.float64)
    for rows, targets in batches:
        x, y = rows.double(), targets.double()
        weights = torch.nn.functional.pad(weights, (0, y.shape[1] - weights.shape[1]))
        eye = torch.eye(x.shape[0], dtype=torch.float64)
        inverse = inverse - inverse @ x.T @ torch.linalg.solve(eye + x @ inverse @ x.T, x @ inverse)
        weights = weights + inverse @ x.T @ (y - x @ weights)
    return weights


def returning_metrics(
    predicted: Sequence[Mapping[int, int]],
    truth: Mapping[int, int],
    shares: Sequence[float],
    *,
    by_node: bool = False,
) -> dict[str, float]:
    """The twin of the metrics of a stream whose classes come back, node by node.

    `predicted[t]` has the class that was predicted after step t for every test node of a class
    seen by then, `truth` the class of every node, `shares` what arrived in each step.
    """
    curve: list[float] = []
    right: list[dict[int, float]] = []
    for answers in predicted:
        hits = {node: 100.0 * (answer == truth[node]) for node, answer in answers.items()}
        of_class: dict[int, list[float]] = {}
        for node, hit in hits.items():
            of_class.setdefault(truth[node], []).append(hit)
        right.append({c: fmean(found) for c, found in of_class.items()})
        curve.append(fmean(hits.values() if by_node else right[-1].values()))
    *before, last = right
    best = {c: [step[c] for step in before if c in step] for c in last}
    lost = [max(earlier) - last[c] for c, earlier in best.items() if earlier]
    return {
        "a_avg": fmean(curve),
        "a_f": curve[-1],
        "a_auc": fmean(curve, shares),
        "class_forgetting": fmean(lost) if lost else 0.0,
    }


def pooled_row(adjacency: Tensor, features: Tensor, hops: int = 2, places: int = 40) -> Tensor:
    """The twin of `Pooling.rows` for one graph, sum by sum: means, then a curve over each sum."""
    operator, h = dense_operator(adjacency, "symmetric"), features.double()
    row: list[float] = []
    for hop in range(hops + 1):
        h = operator @ h if hop else h
        row += (h.sum(dim=0) / h.shape[0]).tolist()
        for total in h.sum(dim=0).tolist():
            size, sign = abs(total), 1.0 if total >= 0 else -1.0
            # whole numbers are stops of the curve; beyond the last by the logarithm, two per octave
            stop = size if size <= places else places + 2 * math.log2(size / places)
            left = min(int(stop), places + 15)
            share = min(stop - left, 1.0)
            curve = [0.0] * (places + 17)
            curve[left], curve[left + 1] = sign * (1 - share), sign * share
            row += curve[1:]
    return torch.tensor(row, dtype=torch.float64)


def link_row(
    adjacency: Tensor, features: Tensor, sender: int, receiver: int, hops: int, degrees: bool
) -> Tensor:
    """The twin of `LinkSet.rows` for one link; `adjacency[i, j]` is the weight of j to i."""
    n, columns = adjacency.shape[0], features.double().tolist()
    for i in range(n if degrees else 0):
        for links in (adjacency[i], adjacency[:, i]):  # received, then sent
            count = sum(bool(weight != 0) for weight in links.tolist())
            size = 0 if count == 0 else min(int(math.log2(count)) + 1, 11)
            columns[i] += [float(size == place) for place in range(12)]
    both = adjacency if torch.equal(adjacency, adjacency.T) else adjacency + adjacency.T
    operator, h = dense_operator(both, "symmetric"), torch.tensor(columns, dtype=torch.float64)
    row = []
    for hop in range(hops + 1):
        h = operator @ h if hop else h
        row += [h[sender], h[receiver], h[sender] * h[receiver]]
    return torch.cat(row)


def slow_detection(known: Sequence[float], unknown: Sequence[float]) -> dict[str, float]:
    """The twins of AUROC, average precision and FPR95, by all pairs and all thresholds."""
    pairs = [1.0 if u > k else 0.5 if u == k else 0.0 for k in known for u in unknown]
    precision, before, alarms = 0.0, 0.0, None
    for threshold in sorted({*known, *unknown}, reverse=True):
        found = sum(u >= threshold for u in unknown)
        wrong = sum(k >= threshold for k in known)
        recall = found / len(unknown)
        precision += (recall - before) * found / (found + wrong)
        before = recall
        if alarms is None and found * 20 >= len(unknown) * 19:
            alarms = wrong / len(known)
    area = sum(pairs) / len(pairs)
    assert alarms is not None
    return {"auroc": 100 * area, "aupr": 100 * precision, "fpr95": 100 * alarms}


def slow_oscr(known: Sequence[float], unknown: Sequence[float], right: Sequence[bool]) -> float:
    """The twin of OSCR: trapezoids under (false acceptance, correct classification)."""
    points = [(0.0, 0.0)]
    for threshold in sorted({*known, *unknown}):
        accepted = sum(u <= threshold for u in unknown) / len(unknown)
        correct = sum(ok and k <= threshold for k, ok in zip(known, right, strict=True))
        points.append((accepted, correct / len(known)))
    steps = pairwise(points)
    return 100 * sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in steps)


def next_item_scores(
    sessions: Sequence[Sequence[str]],
    histories: Sequence[Sequence[str]],
    items: Sequence[str],
    *,
    weights: Sequence[float] | None = None,
    mix: float = 0.6,
    ridge: float = 80.0,
    ridge_power: float = 0.5,
    decay: float = 0.7,
    query_decay: float = 4.0,
    last: int = 20,
) -> Tensor:
    """`NextItem.scores` by loops over clicks, with a dense B; `weights`: of each session."""
    n, place = len(items), {name: i for i, name in enumerate(items)}
    together, past, future = (torch.zeros(n, n, dtype=torch.float64) for _ in range(3))
    for session, counted in zip(sessions, weights or [1.0] * len(sessions), strict=True):
        for one in {*session}:
            for other in {*session}:
                together[place[one], place[other]] += counted
        for cut in range(1, len(session)):
            s, t = torch.zeros(n, dtype=torch.float64), torch.zeros(n, dtype=torch.float64)
            for at, name in enumerate(session):
                distance = cut - 1 - at if at < cut else at - cut
                weight = round(2**16 * math.exp(-distance / decay)) / 2**16
                (s if at < cut else t)[place[name]] += weight
            past += counted * torch.outer(s, s)
            future += counted * torch.outer(s, t)
    counts = together.diagonal()
    left = mix * together + (1 - mix) * past
    left += ridge * torch.diag((counts / counts.mean()) ** ridge_power)
    weights_of_items: Tensor = torch.linalg.solve(left, mix * together + (1 - mix) * future)
    queries = torch.zeros(len(histories), n, dtype=torch.float64)
    for row, history in enumerate(histories):
        known = [name for name in history if name in place]
        for age, name in enumerate(reversed(known[-last:])):
            queries[row, place[name]] += math.exp(-age / query_decay)
    found: Tensor = queries @ weights_of_items
    return found


def nearest_rows(
    rows: Sequence[Sequence[float]], count: int, order: Sequence[int]
) -> list[list[int]]:
    """The nearest other rows of every row, one pair at a time; ties go to the next in order."""
    n = len(rows)

    def nearest(i: int) -> list[int]:
        def far(j: int) -> tuple[float, int]:
            square = sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True))
            return square, (order[j] - order[i]) % n

        return sorted(sorted((j for j in range(n) if j != i), key=far)[:count])

    return [nearest(i) for i in range(n)]
