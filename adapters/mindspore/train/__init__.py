"""``mindspore.train`` (source: MindSpore 2.10.0)."""
