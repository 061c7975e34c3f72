"""What a layer is given is what it reads in test mode: ids of an embedding, tokens of guesses."""

import pytest

np = pytest.importorskip("numpy", reason="NumPy is not installed here")

from layer_bench import ROWS, Bench  # noqa: E402 - it needs NumPy

IDS = [3, 1, 19, 0, 7, 7, 2]


def embedded(b, ids, name="ids", **options):
    """Attaches ids, embeds them, and gives the table's rows."""
    table, values = b.given("table", 20, 12)
    b.kernel.embed_layer(b.kernel.attach_input(ids, name), table, b.new("out", 12), **options)
    return values.astype(np.float32)


@pytest.mark.parametrize("source", [0, 1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(ROWS, 1), (ROWS,), (1, ROWS)], ids=str)
def test_an_embedding_reads_the_ids_that_it_is_given(yr, dtype, shape, source):
    b = Bench(yr)
    ids = np.array(IDS, dtype).reshape(shape)
    values = embedded(b, ids, input_source=source)
    np.testing.assert_array_equal(b.out(), values[IDS])
    ids[...] = ids.reshape(-1)[::-1].reshape(shape)
    np.testing.assert_array_equal(b.out(), values[IDS[::-1]], "read where they lie, in each run")


def test_ids_that_do_not_lie_densely_are_read_anew(yr):
    b = Bench(yr)
    wide = np.zeros((ROWS, 3), np.int64)
    wide[:, 1] = IDS
    values = embedded(b, wide[:, 1])
    np.testing.assert_array_equal(b.out(), values[IDS])
    wide[:, 1] = 5
    np.testing.assert_array_equal(b.out(), values[[5] * ROWS])


def test_tokens_of_all_requests_are_read_at_the_positions_of_the_pass(yr):
    tokens = np.arange(128).reshape(2, 64) % 20
    step, new = np.array([3, 11], np.int32), np.array([4, 3], np.int32)
    b = Bench(yr, meta_tensors=[step, np.zeros((2, 64), np.int64), np.ones(2, np.int32), new])
    values = embedded(b, tokens)
    wanted = [*tokens[0, :4], *tokens[1, 9:12]]
    np.testing.assert_array_equal(b.out(), values[wanted], "the last of a request's tokens stands at its step")


def test_what_has_no_elements_stands_for_the_tokens_of_the_metadata(yr):
    tokens = np.zeros((1, 64), np.int64)
    tokens[0, :ROWS] = IDS
    b = Bench(yr, meta_tensors=[np.zeros(1, np.int32), tokens])
    table, values = b.given("table", 20, 12)
    b.kernel.embed_layer(b.new("ids", 1, dtype="int64"), table, b.new("out", 12))
    np.testing.assert_array_equal(b.out(), values[IDS].astype(np.float32))


def test_ids_that_a_layer_chose_are_embedded(yr):
    b = Bench(yr)
    (x, xs), (table, values) = b.given("x", ROWS, 20), b.given("table", 20, 12)
    chosen = b.new("chosen", 1, dtype="int64")
    b.kernel.argmax_layer(x, chosen)
    b.kernel.embed_layer(chosen, table, b.new("out", 12))
    np.testing.assert_array_equal(b.out(), values[xs.argmax(1)].astype(np.float32))
    wide = Bench(yr)
    (x, _), (table, _) = wide.given("x", ROWS, 2), wide.given("table", 20, 12)
    y = wide.new("y", 2)
    wide.kernel.identity_layer(x, y)
    wide.kernel.embed_layer(y, table, wide.new("out", 12))
    with pytest.raises(yr.KernelError, match="`y` is f32.*an id for each row is wanted"):
        wide.out()


@pytest.mark.parametrize(
    ("ids", "part"),
    [
        (np.array([*IDS[:-1], 20]), "`ids`: row 6 of the pass has the id 20, and `table` has 20 rows"),
        (np.array([-1, *IDS[1:]]), "row 0 of the pass has the id -1"),
        (np.array(IDS[:-1]), r"`ids` is int64 \[6\].*7 rows"),
        (np.zeros((ROWS, 2), np.int32), r"`ids` is int32 \[7, 2\]"),
        (np.zeros(ROWS, np.float32), r"`ids` is float32 \[7\]: int32 or int64"),
    ],
    ids=["too large", "below 0", "too few", "too many", "floats"],
)
def test_ids_that_are_none_are_refused_by_name(yr, ids, part):
    b = Bench(yr)
    embedded(b, ids)
    with pytest.raises((yr.KernelError, yr.ArrayError), match=part):
        b.out()


def test_tokens_of_the_metadata_outside_of_the_table_are_refused(yr):
    tokens = np.full((1, 64), 21, np.int64)
    b = Bench(yr, meta_tensors=[np.zeros(1, np.int32), tokens])
    table, _ = b.given("table", 20, 12)
    b.kernel.embed_layer(b.new("ids", 1, dtype="int64"), table, b.new("out", 12))
    with pytest.raises(yr.ArrayError, match="`tokens`: row 0 of the pass has the id 21"):
        b.out()


def test_a_compiled_kernel_refuses_ids_that_a_layer_wrote(yr):
    kernel = yr.PersistentKernel()
    rng = np.random.default_rng(3)
    table = kernel.attach_input(rng.standard_normal((20, 12)).astype(np.float32), "table")
    ids = kernel.attach_input(np.zeros((64, 1), np.int64), "ids")
    x, y, z = (kernel.new_tensor((64, 12), dtype="float32", name=name) for name in "xyz")
    kernel.embed_layer(ids, table, x)
    kernel.identity_layer(x, y)
    kernel.embed_layer(y, table, z)
    with pytest.raises(yr.KernelError, match="`y` is written by a layer, and the ids of a step are its tokens"):
        kernel.compile()


def test_guesses_are_made_of_the_tokens_that_are_given(yr):
    step, meta = np.array([4, 2], np.int32), np.zeros((2, 64), np.int64)
    tokens = np.zeros((2, 8), np.int32)
    tokens[0, :5], tokens[1, :3] = [5, 6, 7, 5, 6], [1, 2, 3]
    b = Bench(yr, meta_tensors=[step, meta])
    b.kernel.prompt_lookup_spec_handler(yr.PromptLookupConfig(2, 3), b.kernel.attach_input(tokens, "given"))
    # By hand, from the rule: the first earlier place of the last two tokens, -1 where there is none.
    assert b.kernel.run_test_mode()["spec_tokens"].tolist() == [[6, 7, 5, 6], [3, -1, -1, -1]]
    short = Bench(yr, meta_tensors=[step, meta])
    short.kernel.prompt_lookup_spec_handler(yr.PromptLookupConfig(2, 3), short.kernel.attach_input(tokens[:, :4].copy(), "given"))
    with pytest.raises(yr.ArrayError, match=r"`given`: it is int32 \[2, 4\], and request 0 of 2 has 5 tokens"):
        short.kernel.run_test_mode()
