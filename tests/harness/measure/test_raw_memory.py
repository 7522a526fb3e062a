"""Memory is read as it is, whatever the layout, and whatever torch's own functions do by then."""

import numpy as np
import pytest
import torch

from attnbench.harness.measure import raw_memory
from attnbench.harness.measure.raw_memory import elements, pieces

BASE = torch.randn(3, 5, 7, 8)
LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(1, 2),
    "a part": lambda t: t[:, 1:4, :, ::2],
    "expanded": lambda t: t[..., :1].expand(3, 5, 7, 8),
    "one number": lambda t: t[0, 0, 0, 0],
    "empty": lambda t: t[:0],
}


def read(tensor):
    data = bytearray(b"".join(pieces(tensor)))
    if not data:
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    return torch.frombuffer(data, dtype=tensor.dtype).reshape(tensor.shape)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_bytes_come_in_the_order_of_the_elements(layout, dtype, monkeypatch):
    tensor = LAYOUTS[layout](BASE.to(dtype))
    assert torch.equal(read(tensor), tensor)
    monkeypatch.setattr(raw_memory, "PIECE_BYTES", 64)
    assert torch.equal(read(tensor), tensor)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_elements_are_those_at_their_places(dtype):
    tensor = BASE.to(dtype).transpose(1, 2)
    random = np.random.default_rng(0)
    places = tuple(random.integers(size, size=50) for size in tensor.shape)
    expected = tensor[tuple(map(torch.from_numpy, places))].double().numpy()
    assert np.array_equal(elements(tensor, places), expected)


def test_what_a_backend_puts_in_the_place_of_torchs_functions_is_not_asked(monkeypatch):
    def zeros(tensor, *_, **__):
        return torch.zeros_like(tensor)

    places = tuple(np.array([0]) for _ in range(4))
    for name in ("data_ptr", "__getitem__", "contiguous", "detach", "numpy", "cpu", "clone", "to"):
        monkeypatch.setattr(torch.Tensor, name, zeros)
    found = b"".join(pieces(BASE))
    first = elements(BASE, places)
    monkeypatch.undo()
    assert torch.equal(
        torch.frombuffer(bytearray(found), dtype=BASE.dtype).reshape(BASE.shape), BASE
    )
    assert first == BASE[0, 0, 0, 0].item()


def test_on_a_gpu_memory_is_copied_to_the_host(fake_gpu):
    tensor = torch.randn(4, 6, device="cuda").T
    assert torch.equal(read(tensor.cpu()), read(tensor))
    places = (np.arange(6), np.zeros(6, dtype=int))
    assert np.array_equal(elements(tensor, places), tensor[:, 0].cpu().double().numpy())
