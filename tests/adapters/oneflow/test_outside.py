"""flowvision 0.2.2 from PyPI, unmodified: its modules, and its training helpers, on the stand-in."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from tests.adapters.packages import install, run_python

pytestmark = [pytest.mark.processes, pytest.mark.slow]

PINS = (
    *("flowvision==0.2.2", "six==1.17.0", "tqdm==4.67.1", "requests==2.32.5", "pillow==12.0.0", "tabulate==0.9.0"),
    *("urllib3==2.5.0", "idna==3.11", "certifi==2025.10.5", "charset-normalizer==3.4.4"),
)

IMPORTS = """
    import importlib, json, pkgutil, sys
    sys.path.append(sys.argv[1])
    import flowvision
    names = [module.name for module in pkgutil.walk_packages(flowvision.__path__, "flowvision.")]
    for name in names:
        importlib.import_module(name)
    print(json.dumps(len(names)))
"""

TRAINS = """
    import json, sys
    sys.path.append(sys.argv[1])
    import oneflow as flow
    from flowvision.data import Mixup
    from flowvision.loss.cross_entropy import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
    from flowvision.models import resnet18
    from flowvision.scheduler import CosineLRScheduler
    from flowvision.utils import AverageMeter, ModelEmaV2, accuracy, adaptive_clip_grad, dispatch_clip_grad
    from oneflow.nn.parallel import DistributedDataParallel

    rank = flow.env.get_rank()
    flow.manual_seed(rank)
    model = DistributedDataParallel(resnet18(num_classes=10))
    average, meter = ModelEmaV2(model, decay=0.5), AverageMeter()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = CosineLRScheduler(optimizer, t_initial=10, warmup_t=2, warmup_lr_init=0.01)
    mixup = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=10)  # its targets lie on "cuda"
    x, y = flow.randn(4, 3, 32, 32, device="cuda"), flow.tensor([1, 2, 3, 4], device="cuda")
    criterion = SoftTargetCrossEntropy()
    for step in range(2):
        mixed, targets = mixup(x.clone(), y)
        loss = criterion(model(mixed), targets)
        optimizer.zero_grad()
        loss.backward()
        adaptive_clip_grad(model.parameters())
        dispatch_clip_grad(model.parameters(), 1.0, "norm")
        optimizer.step()
        scheduler.step(step)
        average.update(model)
        meter.update(loss.item())
    smooth = LabelSmoothingCrossEntropy()(model(x), y).item()
    one, five = (share.item() for share in accuracy(model(x), y, (1, 5)))
    weights = [model.fc.weight.sum().item(), average.module.fc.weight.sum().item()]
    told = {"rate": optimizer.param_groups[0]["lr"], "positive": [meter.avg > 0, smooth > 0], "weights": weights,
            "ordered": 0 <= one <= five <= 100}
    with open(f"{sys.argv[1]}/{rank}.json", "w") as file:
        json.dump(told, file)
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package and its dependencies in a folder; skip the test if pip cannot get them."""
    folder = tmp_path_factory.mktemp("packages")
    return install(folder, PINS, "--no-deps", constraint="setuptools<75")  # its setup.py imports pkg_resources


def run_on_the_stand_in(text: str, packages: Path, folder: Path, ranks: int) -> str:
    (folder / "script.py").write_text(textwrap.dedent(text))
    command = ("-W", "ignore", "-m", "collshim", "run", "--as", "oneflow", "--device", "cpu")
    return run_python(*command, "-n", str(ranks), str(folder / "script.py"), str(packages))


def test_all_flowvision_modules_can_be_imported(packages: Path, tmp_path: Path) -> None:
    assert int(run_on_the_stand_in(IMPORTS, packages, tmp_path, 1)) > 150


def test_flowvision_helpers_train_on_two_ranks(packages: Path, tmp_path: Path) -> None:
    run_on_the_stand_in(TRAINS, packages, tmp_path, 2)
    first, second = (json.loads((packages / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    assert first["positive"] == [True, True]
    assert first["ordered"]
    assert first["rate"] == pytest.approx(0.055)
    assert first["weights"][0] != first["weights"][1]
