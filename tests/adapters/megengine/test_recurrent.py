"""Recurrent layers have the results and gradients of torch's, with the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import collshim.megengine as mge
import collshim.megengine.module as M

pytestmark = pytest.mark.unranked


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", ["RNN", "LSTM"])
def test_gradients_are_torchs(name: str, bias: bool, both: bool) -> None:
    layer = getattr(M, name)(2, 3, 2, bias=bias, bidirectional=both)
    same = getattr(torch.nn, name)(2, 3, 2, bias=bias, bidirectional=both)
    weights = torch.nn.utils.parameters_to_vector(same.parameters())
    layer._flatten_weights._reset(weights.detach().numpy().reshape(layer._flatten_weights.shape))
    inp = np.cos(np.arange(40, dtype=np.float32)).reshape(5, 4, 2)
    with mge.autodiff.GradManager().attach(layer.parameters()) as manager:
        output, _ = layer(mge.tensor(inp))
        manager.backward((output * output).sum())
    wanted = same(torch.tensor(inp))[0]
    wanted.square().sum().backward()
    gradients = torch.cat([parameter.grad.reshape(-1) for parameter in same.parameters()])
    np.testing.assert_allclose(output.numpy(), wanted.detach(), atol=1e-5)
    np.testing.assert_allclose(layer._flatten_weights.grad.numpy().reshape(-1), gradients, rtol=1e-3, atol=1e-4)


def test_dropout_changes_only_what_later_layers_get_in_training() -> None:
    layer, inp = M.RNN(2, 3, 2, dropout=0.5), mge.tensor(np.ones((5, 4, 2)))
    states = [layer(inp)[1].numpy() for _ in range(2)]
    assert (states[0][0] == states[1][0]).all()
    assert (states[0][1] != states[1][1]).any()
    layer.eval()
    assert (layer(inp)[1].numpy() == layer(inp)[1].numpy()).all()


def test_projections_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="proj_size is 2"):
        M.LSTM(2, 3, proj_size=2)
