"""``mindspore.dataset.core`` (source: MindSpore 2.10.0)."""
