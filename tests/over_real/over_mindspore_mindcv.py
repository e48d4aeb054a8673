"""The training of mindcv over the real MindSpore that collshim carries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.over_real.over_mindspore import run_script

MINDCV = """
    import json, sys
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn
    from mindspore.communication import get_group_size, get_rank, init
    from mindspore.dataset import NumpySlicesDataset
    from mindcv.loss import create_loss
    from mindcv.optim import create_optimizer
    from mindcv.scheduler import create_scheduler
    from mindcv.utils import StateMonitor, create_trainer, get_metrics

    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    init()
    rank, size, told = get_rank(), get_group_size(), {}
    random = np.random.default_rng(0)
    rows, first = random.normal(size=(24, 5)).astype(np.float32), random.normal(size=(3, 5)).astype(np.float32)
    classes = (rows @ first.T).argmax(1).astype(np.int32)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.head = nn.Dense(5, 3, weight_init=Tensor(first[::-1].copy()), bias_init="zeros")

        def construct(self, x):
            return self.head(x)

    def batches(count):
        shard = {} if count == 1 else {"num_shards": count, "shard_id": rank}
        return NumpySlicesDataset((rows, classes), shuffle=False, **shard).batch(6 // count)

    def trained(name, count, **customized):
        net = Net()
        rates = create_scheduler(4, scheduler="cosine_decay", lr=0.5, min_lr=0.01, decay_epochs=2, num_epochs=2)
        optimizer = create_optimizer(net.trainable_params(), opt="momentum", lr=rates, weight_decay=1e-3, momentum=0.9)
        loss = create_loss(name="CE", label_smoothing=0.1)
        trainer = create_trainer(net, loss, optimizer, get_metrics(2), "O0", None, "fixed", **customized)
        monitor = StateMonitor(
            trainer, model_name=name, dataset_sink_mode=False, dataset_val=batches(count),
            metric_name=["Top_1_Accuracy"], ckpt_save_dir=f"{sys.argv[1]}/{rank}", rank_id=rank, device_num=count,
        )
        trainer.train(2, batches(count), callbacks=[monitor], dataset_sink_mode=False)
        weights = [one.asnumpy().ravel().tolist() for one in net.trainable_params()]
        told[name] = [sum(weights, []), float(np.ravel(monitor.best_res)[0])]

    trained("alone", 1)
    trained("alone, own step", 1, clip_grad=True, clip_value=15.0)
    ms.set_auto_parallel_context(device_num=size, parallel_mode="data_parallel", gradients_mean=True)
    trained("shared", size)
    trained("shared, own step", size, clip_grad=True, clip_value=15.0)
    json.dump(told, open(f"{sys.argv[1]}/{rank}.json", "w"))
"""


@pytest.mark.timeout(300)
def test_mindcv_trains_and_evaluates(tmp_path: Path) -> None:
    """mindcv 0.3.0 from PyPI, unmodified: two ranks compute what each of them computes alone with the whole batch.

    Its own train step clips before the gradients are reduced, so they must stay below the limit.
    """
    run_script(MINDCV, tmp_path, "--patch", "mindspore")
    for rank in range(2):
        told = json.loads((tmp_path / f"{rank}.json").read_text())
        weights, accuracy = told.pop("alone")
        assert len(told) == 3
        for found in told.values():
            assert found[0] == pytest.approx(weights, abs=1e-5)
            assert found[1] == pytest.approx(accuracy)
