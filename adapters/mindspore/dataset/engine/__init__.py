"""``mindspore.dataset.engine``: datasets, samplers, iterators (source: MindSpore 2.10.0)."""
