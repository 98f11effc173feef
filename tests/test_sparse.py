import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.errors import InputError
from undrift.sparse import Csr, beside, dense_columns, plus, product_in_cache, stacked

FLOATS = [torch.float32, torch.float64]
EMPTY_SHAPES = [(0, 0), (0, 4), (4, 0), (3, 4)]


def random_dense(seed: int, rows: int, columns: int, density: float = 0.3) -> np.ndarray:
    """Random entries, with a row and a column left empty where there is room."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < density)
    dense[rows // 2 : rows // 2 + (rows > 1)] = 0.0
    dense[:, columns // 2 : columns // 2 + (columns > 1)] = 0.0
    return dense


def csr_of(dense: np.ndarray, dtype: torch.dtype = torch.float64, symmetric: bool = False) -> Csr:
    return Csr.from_scipy(sp.csr_matrix(dense), dtype=dtype, symmetric=symmetric)


def parts(indptr, indices, values=None, dtype=torch.int32):
    values = [1.0] * len(indices) if values is None else values
    places = (torch.tensor(part, dtype=dtype) for part in (indptr, indices))
    return (*places, torch.tensor(values))


@pytest.mark.parametrize(
    ("indptr", "indices", "values", "shape", "message"),
    [
        ([0, 1], [0], [1.0], (2, 2), r"needs 3 row pointers .* not \(2,\), \(1,\) and \(1,\)"),
        ([0, 1, 2], [0, 1], [1.0], (2, 2), "as many columns as values"),
        ([0, 1, 2], [[0], [1]], [[1.0], [1.0]], (2, 2), "as many columns as values"),
        ([], [], [], (-1, 2), "needs 0 row pointers"),
        ([0], [], [], (0, -1), "a CSR matrix of shape"),
        ([1, 1, 2], [0, 1], [1.0, 1.0], (2, 2), "from 0 to 2 .* from 1 to 2"),
        ([0, 1, 1], [0, 1], [1.0, 1.0], (2, 2), "from 0 to 2 .* from 0 to 1"),
        ([0, 2, 1, 2], [0, 1], [1.0, 1.0], (3, 2), "from 0 to 2 and never decrease"),
        ([0, 1, 2], [0, 2], [1.0, 1.0], (2, 2), "column index 2 is outside a matrix of 2 columns"),
        ([0, 1, 2], [-1, 1], [1.0, 1.0], (2, 2), "column index -1 is outside"),
        ([0, 2], [1, 0], [1.0, 1.0], (1, 2), "columns of a row must rise without repeats"),
        ([0, 0, 2, 2], [1, 1], [1.0, 1.0], (3, 2), "columns of a row must rise without repeats"),
    ],
)
def test_wrong_parts_are_refused(indptr, indices, values, shape, message):
    with pytest.raises(InputError, match=message):
        Csr(*parts(indptr, indices, values), shape)
    pointers, columns, values = parts([0, 1], [0])
    with pytest.raises(InputError, match="both be int32 or both int64"):
        Csr(pointers, columns.long(), values, (1, 1))
    with pytest.raises(InputError, match="1 x 2 matrix is not square"):
        Csr(pointers, columns, values, (1, 2), symmetric=True)


def test_int64_indices_give_the_same_products():
    dense = random_dense(0, 6, 5)
    narrow = csr_of(dense)
    wide = Csr(narrow.indptr.long(), narrow.indices.long(), narrow.values, narrow.shape)
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(wide @ x, narrow @ x, rtol=0, atol=0)
    assert torch.equal(wide.t().to_dense(), torch.from_numpy(dense.T))


def test_from_scipy_adds_duplicates_and_sorts_columns_without_touching_the_input():
    raw = sp.csr_matrix(
        (np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )
    before = [array.copy() for array in (raw.indptr, raw.indices, raw.data)]
    csr = Csr.from_scipy(raw)
    assert csr.to_dense().tolist() == [[2, 0, 5], [0, 8, 0]]
    assert csr.indices.tolist() == [0, 2, 1]
    for now, then in zip((raw.indptr, raw.indices, raw.data), before, strict=True):
        assert np.array_equal(now, then)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("layout", ["csr", "coo", "csc", "lil", "dok", "dia", "bsr"])
def test_from_scipy_copies_every_layout_and_type(layout, kind):
    dense = (random_dense(1, 4, 6) > 0).astype(kind)
    raw = sp.csr_array(dense).asformat(layout)
    csr = Csr.from_scipy(raw, dtype=torch.float64)
    if layout == "csr":
        raw.data[:] = 0
    assert np.array_equal(csr.to_dense().numpy(), dense)
    assert csr.indptr.dtype == csr.indices.dtype == torch.int32


@pytest.mark.parametrize("dtype", FLOATS)
def test_to_scipy_is_the_same_matrix_on_the_same_memory(dtype):
    dense = random_dense(2, 5, 7)
    csr = csr_of(dense, dtype)
    back = csr.to_scipy()
    assert sp.isspmatrix_csr(back)
    assert back.dtype == (np.float32 if dtype == torch.float32 else np.float64)
    np.testing.assert_array_equal(back.toarray(), dense.astype(back.dtype))
    assert np.shares_memory(back.data, csr.values.numpy())
    assert back.has_canonical_format


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_transpose_and_the_matrix_that_keeps_it(dtype):
    dense = random_dense(5, 4, 6)
    csr = csr_of(dense, dtype)
    kept = csr.with_transpose()
    assert kept.with_transpose() is kept
    assert kept.t() is kept.t()
    assert torch.equal(kept.t().to_dense(), csr.t().to_dense())
    assert csr.transposed is None
    assert csr.t().dtype == dtype
    assert torch.equal(csr.t().to_dense(), csr.to_dense().T)
    assert torch.equal(csr.t().t().to_dense(), csr.to_dense())


def test_to_returns_itself_when_nothing_changes():
    csr = csr_of(np.eye(3), torch.float32, symmetric=True)
    assert csr.to() is csr
    assert csr.to("cpu") is csr
    assert csr.to("cpu", torch.float32) is csr
    wide = csr.to(dtype=torch.float64)
    assert (wide.dtype, wide.symmetric, wide.shape) == (torch.float64, True, (3, 3))
    assert torch.equal(wide.to_dense(), torch.eye(3, dtype=torch.float64))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(1, 4),
    st.sampled_from(FLOATS),
)
def test_products_equal_dense_ones(seed, rows, columns, width, dtype):
    dense = random_dense(seed, rows, columns)
    csr = csr_of(dense, dtype)
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(columns, width))).to(dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    wanted = torch.from_numpy(dense).to(dtype) @ x
    torch.testing.assert_close(csr @ x, wanted, rtol=tolerance, atol=tolerance)
    product = (csr @ csr_of(x.numpy(), dtype)).to_dense()
    torch.testing.assert_close(product, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_gradient_is_right(symmetric):
    dense = random_dense(8, 5, 5) if symmetric else random_dense(8, 5, 7)
    csr = csr_of(dense + dense.T if symmetric else dense, symmetric=symmetric)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(csr.shape[1], 3, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: csr @ x, (x,))
    assert torch.autograd.gradgradcheck(lambda x: (csr @ x) ** 2, (x,))


def test_the_gradient_of_a_sum_and_of_a_vector():
    # the gradient of a sum arrives expanded, without memory of its own
    csr = csr_of(random_dense(9, 4, 6))
    for shape in ((6,), (6, 2)):
        x = torch.ones(shape, dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad((csr @ x).sum(), x)
        expected = csr.to_dense().sum(dim=0)
        torch.testing.assert_close(
            gradient, expected if x.dim() == 1 else expected[:, None].expand(6, 2)
        )


@pytest.mark.parametrize("grad", [False, True])
def test_products_that_cannot_be_are_refused(grad):
    csr = csr_of(np.ones((2, 3)), torch.float32)
    with pytest.raises(InputError, match="a 2 x 3 sparse matrix with one of 2 rows"):
        csr @ torch.ones(2, 1, requires_grad=grad)
    with pytest.raises(InputError, match=r"float32 with a dense one of torch\.float64"):
        csr @ torch.ones(3, 1, dtype=torch.float64, requires_grad=grad)


@pytest.mark.parametrize("shape", EMPTY_SHAPES)
def test_empty_matrices(shape):
    csr = Csr.from_scipy(sp.csr_matrix(shape, dtype=np.float32))
    assert csr.nnz == 0
    assert torch.equal(csr.to_dense(), torch.zeros(shape))
    assert csr.t().shape == shape[::-1]
    x = torch.ones(shape[1], 2, requires_grad=True)
    y = csr @ x
    assert torch.equal(y, torch.zeros(shape[0], 2))
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(gradient, torch.zeros(shape[1], 2))
    assert csr[torch.zeros(shape[0], dtype=torch.bool)].shape == (0, shape[1])
    assert csr[: shape[0]].shape == shape


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (torch.tensor([0, 3]), "row 3 is not there: the 3 rows are numbered from 0"),
        (torch.tensor([-1]), "row -1 is not there"),
        (torch.tensor([True]), r"a row mask needs 3 entries, not \(1,\)"),
        (torch.tensor([0.5]), r"whole numbers or a boolean mask, not as \(1,\) of torch.float32"),
        (torch.tensor([[0]]), r"not as \(1, 1\) of torch.int64"),
        (torch.tensor(0), r"not as \(\) of torch.int64"),
    ],
)
def test_rows_that_are_not_there_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        csr_of(np.eye(3))[rows]


@pytest.mark.parametrize("limits", [(0, 6), (1, 4), (2, 2), (6, 6), (-2, None), (2, 1), (0, 9)])
def test_slices_are_views_of_consecutive_rows(limits):
    dense = random_dense(11, 6, 5, density=0.6)
    csr, rows = csr_of(dense), slice(*limits)
    np.testing.assert_array_equal(csr[rows].to_dense().numpy(), dense[rows])
    if csr[rows].nnz:
        assert np.shares_memory(csr[rows].values.numpy(), csr.values.numpy())
    with pytest.raises(InputError, match="are no range; give them as a list of numbers"):
        csr[::2]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(0, 6), st.integers(1, 6))
def test_sparse_rows_answer_as_dense_ones_do(seed, n, d):
    sparse = csr_of(random_dense(seed, n, d), torch.float32)
    dense = sparse.to_dense()
    column = torch.linspace(-1, 1, n).unsqueeze(1)
    same = {
        "double": lambda rows: rows.double(),
        "scaled": lambda rows: rows * column,
        "abs": lambda rows: rows.abs(),
        "square": lambda rows: rows.square(),
        "transposed": lambda rows: rows.t(),
        "some": lambda rows: rows[torch.arange(n) % 2 == 0],
        "first": lambda rows: rows[:2],
        "over columns": lambda rows: rows.sum(dim=1),
        "over rows": lambda rows: rows.sum(dim=0),
        "twice": lambda rows: plus(rows, rows),
        "mixed sum": lambda rows: plus(rows, dense),
        "beside": lambda rows: beside([rows, rows]),
        "beside dense": lambda rows: beside([rows, dense]),
        "stacked": lambda rows: stacked([rows, rows]),
        "on dense": lambda rows: stacked([dense, rows]),
    }
    for what, of in same.items():
        ours, theirs = of(sparse), of(dense)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), what
        torch.testing.assert_close(ours.to_dense(), theirs.to_dense(), msg=what)


def test_sparse_rows_stay_sparse_where_they_can():
    sparse, dense = csr_of(np.eye(3), torch.float32), torch.eye(3)
    for made in (plus(sparse, sparse), beside([sparse, sparse]), stacked([dense, sparse])):
        assert isinstance(made, Csr)
    for made in (plus(sparse, dense), beside([dense, sparse]), stacked([dense, dense])):
        assert isinstance(made, torch.Tensor)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(0, 9), st.booleans())
def test_parts_are_those_of_the_dense_matrix(seed: int, n: int, symmetric: bool) -> None:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n, n)) < 0.4, rng.normal(size=(n, n)), 0.0)
    dense = dense + dense.T if symmetric else dense
    csr = csr_of(dense, symmetric=symmetric)
    index = torch.from_numpy(np.flatnonzero(rng.random(n) < 0.5))
    some = index.numpy()
    assert np.array_equal(csr.block(index).to_dense().numpy(), dense[np.ix_(some, some)])
    assert csr.columns_of(index).tolist() == [j for i in some for j in np.flatnonzero(dense[i])]
    assert csr.entries_in(index) == csr.columns_of(index).numel()
    assert np.allclose(csr.row_sums(), dense.sum(axis=1), atol=1e-12)
    assert np.array_equal(csr.row_sums(index), csr.row_sums()[some])
    cut = dense.copy()
    cut[some], cut[:, some] = 0, 0
    left = csr.cleared(index)
    assert np.array_equal(left.to_dense().numpy(), cut)
    with_loops = csr.with_loops(torch.arange(n))
    added = csr._with_ones(torch.arange(n))  # this and the next as a GPU does it
    for looped in (with_loops, added):
        assert np.array_equal(looped.to_dense().numpy(), dense + np.eye(n))
    cut_out = csr._below(csr._cut(index), (some.size, some.size), csr.entries_in(index))
    assert np.array_equal(cut_out.to_dense().numpy(), dense[np.ix_(some, some)])
    turned = csr._sorted_by_column()
    assert np.array_equal(turned.to_dense().numpy(), dense.T)
    again = np.concatenate([some[::-1], some])  # rows in any order, and twice
    picked = csr[torch.from_numpy(again)]
    assert np.array_equal(picked.to_dense().numpy(), dense[again])
    assert (csr.t() is csr.with_transpose() is csr) or not symmetric
    for made in (left, with_loops, added, cut_out, turned, picked):
        Csr(made.indptr, made.indices, made.values, made.shape)  # passes the checks


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), n=st.integers(2, 9), d=st.integers(1, 9))
def test_fewer_columns_more_rows_and_some_columns_dense(seed: int, n: int, d: int) -> None:
    dense = random_dense(seed, n, d)
    rows = csr_of(dense)
    used = torch.from_numpy(dense.any(axis=0)).nonzero().flatten()
    assert np.array_equal(rows.over(used).to_dense().numpy(), dense[:, used.numpy()])
    places = torch.arange(n) * 2
    wider = np.zeros((2 * n, d))
    wider[places.numpy()] = dense
    assert np.array_equal(rows.at_rows(places, 2 * n).to_dense().numpy(), wider)
    for some in (slice(0, d), slice(d // 2, d), slice(d // 3, d // 3)):
        assert np.array_equal(dense_columns(rows, some).numpy(), dense[:, some])
        assert np.array_equal(dense_columns(torch.from_numpy(dense), some).numpy(), dense[:, some])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 4, 7, 16])
@pytest.mark.parametrize(("cache", "at_once"), [(1, 3), (1, 10**6), (10**6, 3), (10**6, 10**6)])
def test_products_in_cache_are_products(cache, at_once, width, dtype, monkeypatch) -> None:
    monkeypatch.setattr("undrift.sparse._BYTES_IN_CACHE", cache)
    monkeypatch.setattr("undrift.sparse._WIDENED_AT_ONCE", at_once)
    matrix, right = random_dense(3, 9, 7), random_dense(4, 7, width)
    ours = product_in_cache(csr_of(matrix, torch.float32), torch.tensor(right, dtype=dtype))
    assert ours.dtype == dtype
    assert np.allclose(ours.numpy(), matrix.astype(np.float32) @ right, rtol=1e-5, atol=1e-5)
    none = product_in_cache(csr_of(np.zeros((0, 7))), torch.tensor(right))
    assert none.shape == (0, width)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("cut", [1, 10**6])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_blocks_are_those_of_a_dense_matrix(share, cut, threads, monkeypatch) -> None:
    monkeypatch.setattr("undrift.sparse._CUT_AT_ONCE", cut)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    dense = random_dense(5, 11, 11)
    index = (torch.arange(11) < round(share * 11)).nonzero().flatten() + 0
    block = csr_of(dense).block(index)
    Csr(block.indptr, block.indices, block.values, block.shape)
    assert np.array_equal(block.to_dense().numpy(), dense[np.ix_(index, index)])


@pytest.mark.parametrize("at_once", [1, 5, 1000])
def test_sums_over_columns_are_products_with_the_pattern(at_once: int, monkeypatch) -> None:
    monkeypatch.setattr("undrift.sparse._AT_ONCE", {"cpu": at_once})
    dense = random_dense(3, 9, 7)
    vector = torch.arange(7, dtype=torch.float64)
    sums = csr_of(dense).sums_over_columns(vector)
    assert np.allclose(sums.numpy(), (dense != 0) @ vector.numpy(), rtol=1e-15)
    product = product_in_cache(csr_of(dense, torch.float32), vector.unsqueeze(1))
    assert np.allclose(product.flatten().numpy(), dense.astype(np.float32) @ vector.numpy())
    assert csr_of(np.zeros((0, 7))).sums_over_columns(vector).shape == (0,)
    assert csr_of(np.zeros((3, 7))).sums_over_columns(vector).tolist() == [0, 0, 0]


def test_dots_are_those_of_the_stored_entries() -> None:
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((5, 7)) < 0.4, rng.standard_normal((5, 7)), 0.0)
    left, right = (torch.from_numpy(rng.standard_normal((n, 3))) for n in (5, 7))
    csr = Csr.from_scipy(sp.csr_matrix(dense), dtype=torch.float64)
    wanted = (left @ right.T).numpy()[dense.nonzero()]
    assert np.allclose(csr.dots(left, right).numpy(), wanted, rtol=1e-14)
    assert np.array_equal(csr.with_values(csr.values * 2).to_dense().numpy(), 2 * dense)
    assert csr_of(np.zeros((5, 7))).dots(left, right).shape == (0,)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_sparse_products_equal_dense_ones(seed, n, k, m):
    left, right = random_dense(seed, n, k), random_dense(seed + 1, k, m)
    product = csr_of(left) @ csr_of(right)
    assert (product.shape, product.dtype) == ((n, m), torch.float64)
    np.testing.assert_allclose(product.to_dense().numpy(), left @ right, atol=1e-12)
