"""Programs without a mistake, similar to those in ``programs``."""

from __future__ import annotations

from tests.checking.programs import MINDSPORE, NET, TORCH, WORKERS

# The imports, and a program without a mistake.
RIGHT = {
    "prints of rank 0": (TORCH, "dist.all_reduce(x)\nif rank == 0:\n    print(x)"),
    "both branches": (TORCH, "if rank == 0:\n    dist.broadcast(x, 0)\nelse:\n    dist.broadcast(y, 0)"),
    "the first rank, the others, and no ranks at all": (
        TORCH,
        "if rank == 0:\n    dist.gather_object(x, parts)\nelif rank > 0:\n    dist.gather_object(x, None)",
    ),
    "the first rank goes ahead": (
        TORCH,
        "if local_rank not in (-1, 0):\n    dist.barrier()\ndownload()\nif local_rank == 0:\n    dist.barrier()",
    ),
    "a barrier in a return": (
        TORCH,
        "def f():\n    if rank != 0:\n        dist.barrier()\n        return\n    download()\n    dist.barrier()",
    ),
    "whether it is distributed": (TORCH, "if rank != -1:\n    dist.barrier()\nif local_rank >= 0:\n    dist.barrier()"),
    "whether it is distributed, by None": (TORCH, "if rank is not None:\n    dist.barrier()"),
    "the number of ranks, beside the rank": (
        TORCH,
        "def f():\n    size, own_rank = get_size_and_rank()\n    if size > 1:\n        dist.barrier()",
    ),
    "the number of ranks": (TORCH, "if world_size > 1:\n    dist.all_reduce(x)"),
    "a group's members": (TORCH, "if rank in (0, 1):\n    dist.all_reduce(x, group=pair)"),
    "messages": (TORCH, "if rank == 0:\n    dist.send(x, 1)\nelse:\n    dist.recv(x, 0)"),
    "prints of the first worker": (
        WORKERS,
        "total = strategy.reduce('SUM', x, axis=None)\nif task_id == 0:\n    print(total)",
    ),
    "a worker's number, read by no condition": (
        WORKERS,
        "seed = 7 + task_id\nif seed_all:\n    strategy.reduce('SUM', x, axis=None)",
    ),
    "an evaluator": (
        WORKERS,
        "def main():\n    if task_type == 'evaluator':\n        return\n    strategy.reduce('SUM', x, axis=None)",
    ),
    "another object's task": (TORCH, "if job.task_id == 0:\n    dist.barrier()"),
    "a parameter of the name of a strategy": (
        WORKERS,
        "def run(strategy):\n    if task_id == 0:\n        strategy.reduce('SUM', x, axis=None)",
    ),
    "a prefix for the chief": (
        WORKERS,
        "def path(kind, number):\n    return 'a' if _is_chief(kind, number) else f'b{number}'\n"
        "def _is_chief(kind, number):\n    return number == 0\nname = path(task_type, task_id)\n"
        "strategy.gather(x, axis=0)",
    ),
    "replicas of one process": (
        WORKERS,
        "mirrored = tf.distribute.MirroredStrategy()\nif task_id == 0:\n    mirrored.reduce('SUM', x, axis=None)",
    ),
    "both replicas": (
        WORKERS,
        "def step(x):\n    context = tf.distribute.get_replica_context()\n"
        "    number = context.replica_id_in_sync_group\n"
        "    if number == 0:\n        x = x + 1\n    return context.all_reduce('SUM', x)",
    ),
    "a merge of all replicas": (
        WORKERS,
        "def step(x):\n    context = tf.distribute.get_replica_context()\n"
        "    if context.replica_id_in_sync_group == 0:\n        x = x + 1\n"
        "    context.merge_call(add, args=(x,))",
    ),
    "a function that asks whether it is distributed": (
        TORCH,
        "def is_distributed():\n    return int(os.environ.get('RANK', -1)) != -1\n"
        "if is_distributed():\n    dist.barrier()",
    ),
    "whether a variable is set": (
        TORCH,
        "if not os.environ.get('RANK'):\n    start()\n    sys.exit(0)\ndist.barrier()\n"
        "if os.environ.get('LOCAL_RANK'):\n    dist.barrier()",
    ),
    "a failure": (TORCH, "if rank > 7:\n    print('too many')\n    sys.exit(1)\ndist.barrier()"),
    "a failure with a text": (TORCH, "if rank > 7:\n    raise SystemExit('too many')\ndist.barrier()"),
    "an exit of all ranks": (TORCH, "if rank == 0:\n    print('done')\ndist.barrier()\nsys.exit(0)"),
    "a conditional argument": (TORCH, "dist.scatter(x, parts if rank == 0 else None)\ny = rank == 0 and x is None"),
    "the same collective on both sides": (TORCH, "dist.scatter(x, xs) if rank == 0 else dist.scatter(x, None)"),
    "the first rank goes ahead, on two lines": (TORCH, "rank != 0 and dist.barrier()\nrank == 0 and dist.barrier()"),
    "a match with the same collective in all cases": (
        TORCH,
        "match dist.get_rank():\n    case 0:\n        dist.broadcast(x, 0)\n    case _:\n        dist.broadcast(y, 0)",
    ),
    "an error": (TORCH, "if rank > 7:\n    raise ValueError('too many')\ndist.barrier()"),
    "a definition": (TORCH, "if rank == 0:\n    def hook(x):\n        dist.all_reduce(x)"),
    "an unknown function": (TORCH, "if rank == 0:\n    dist.barrier()\nelse:\n    self.synchronize()"),
    "a handle": (TORCH, "work = dist.all_reduce(x, async_op=True)\nwork.wait()"),
    "a handle at times": (TORCH, "work = dist.all_reduce(x, async_op=overlap)\nif work:\n    work.wait()"),
    "a list of calls": (TORCH, "[dist.all_reduce(x) for x in xs]"),
    "the last call of a function": (TORCH, "def f(x):\n    return dist.all_reduce(x)"),
    "an unpacked pair": (MINDSPORE, "y, _ = comm_func.all_reduce(x)\nprint(y.asnumpy())"),
    "a pair's first": (MINDSPORE, "y = comm_func.all_reduce(x)[0]\nprint(y.asnumpy())"),
    "a pair, taken apart later": (MINDSPORE, "y = comm_func.all_reduce(x)\nprint(y[0].asnumpy())"),
    "a result without a handle": (MINDSPORE, "y = comm_func.broadcast(x, 0)\nprint(y.asnumpy())"),
    "a primitive's option": (MINDSPORE, "reduce = ops.AllReduce(ops.ReduceOp.SUM)\ny = reduce(x)"),
    "an option from an argument": (MINDSPORE, "def f(op, x):\n    return ops.AllReduce(op)(x)"),
    "a pair, returned": (
        MINDSPORE,
        "def forward(x):\n    y = comm_func.all_reduce(x)\n    return y\nloss, _ = forward(x)",
    ),
    "a pair, beside another object's attribute": (
        MINDSPORE,
        "y = comm_func.all_reduce(x)\nprint(point.y.sum())\nz, _ = y",
    ),
    "a primitive, made and called": (MINDSPORE, NET.format(line="return ops.AllReduce()(x)")),
    "a detached loss": (
        TORCH,
        "def step(model, x):\n    loss = model(x)\n    shown = loss.detach()\n    dist.all_reduce(shown)\n"
        "    loss.backward()",
    ),
    "a loss, reduced after": (
        TORCH,
        "def step(model, x):\n    loss = model(x)\n    loss.backward()\n    dist.all_reduce(loss)",
    ),
    "a loss, reduced without gradients": (
        TORCH,
        "def step(model, x):\n    loss = model(x)\n    with torch.no_grad():\n        dist.all_reduce(loss)\n"
        "    loss.backward()",
    ),
    "an own part, put back": (
        TORCH,
        "def step(model, x, y):\n    logits = model(x)\n    parts = [torch.empty_like(logits) for _ in range(2)]\n"
        "    dist.all_gather(parts, logits)\n    parts[rank] = logits\n    loss = criterion(torch.cat(parts), y)\n"
        "    loss.backward()",
    ),
    "gathered keys beside own queries": (
        TORCH,
        "def step(model, x, y):\n    query, key_feature = model(x)\n    dist.all_gather(feature_parts, key_feature)\n"
        "    loss = criterion(query @ torch.cat(feature_parts).T, y)\n    loss.backward()",
    ),
    "gathered predictions of a metric": (
        TORCH,
        "def step(model, x, y):\n    logits = model(x)\n    dist.all_gather(parts, logits)\n"
        "    accuracy = (torch.cat(parts).argmax(1) == y).mean()\n    loss = criterion(logits, y)\n    loss.backward()",
    ),
    "a teacher's output": (
        TORCH,
        "def step(teacher_net, net, x):\n    with torch.no_grad():\n        logits = teacher_net(x)\n"
        "    dist.all_reduce(logits)\n    loss = criterion(net(x), logits)\n    loss.backward()",
    ),
    "weights that a function makes": (
        TORCH,
        "def step(model, x, y):\n    scale = compute_model_weights(y)\n    dist.all_reduce(scale)\n"
        "    loss = (scale * model(x)).sum()\n    loss.backward()",
    ),
    "weights of a loss": (
        TORCH,
        "def step(model, x, y):\n    weights = frequencies(y)\n    dist.all_reduce(weights)\n"
        "    loss = (weights * model(x)).sum()\n    loss.backward()",
    ),
    "one call on each path": (
        TORCH,
        "def save(model):\n    if rank != 0:\n        dist.barrier()\n        return\n    if parts == 1:\n"
        "        dist.barrier()\n    else:\n        if not control:\n            dist.barrier()\n            return\n"
        "        dist.barrier()",
    ),
    "a switch for all ranks": (TORCH, "if negative_all_rank:\n    dist.all_gather(parts, x)"),
    "a count in the divisor": (
        TORCH,
        "def step(model, x, mask):\n    count = mask.sum()\n    dist.all_reduce(count)\n"
        "    loss = model(x).sum() / count\n    loss.backward()",
    ),
    "a number of elements for a loss": (
        TORCH,
        "def step(model, x, number):\n    num_for_loss = number.clone()\n    dist.all_reduce(num_for_loss)\n"
        "    loss = model(x, divisor=num_for_loss.clamp_min(1))\n    loss.backward()",
    ),
    "a sum divided": (TORCH, "dist.all_reduce(x)\nx /= world_size"),
    "a mean, divided by another number": (TORCH, "dist.all_reduce(x, op=ReduceOp.AVG)\nx /= steps"),
}
