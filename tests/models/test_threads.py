"""Work side by side: results in order, errors passed on, the number of threads as before."""

import pytest
import torch

from kvviz.models.threads import CorePool, one_core


@pytest.fixture(params=[1, 2])
def cores(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_order_and_each_has_one_core(cores):
    with CorePool(torch.device("cpu")) as pool:
        found = list(pool.map(lambda item: (item, torch.get_num_threads()), range(5)))
        assert found == [(item, 1) for item in range(5)]
        assert list(pool.map(lambda item: torch.get_num_threads(), [0])) == [cores]
        assert torch.get_num_threads() == cores


def test_an_error_or_a_stop_leaves_everything_as_it_was(cores):
    def broken(item):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), CorePool(torch.device("cpu")) as pool:
        list(pool.map(broken, [1, 2, 3]))
    with pytest.raises(KeyError), CorePool(torch.device("cpu")) as pool:
        for _ in pool.map(str, [1, 2, 3]):
            raise KeyError
    assert torch.get_num_threads() == cores


def test_work_of_a_few_rows_stays_on_one_core_and_no_longer(cores):
    with pytest.raises(KeyError), one_core():
        assert torch.get_num_threads() == 1
        raise KeyError
    assert torch.get_num_threads() == cores
