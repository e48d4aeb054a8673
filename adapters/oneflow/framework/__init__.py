"""The parts of ``oneflow.framework`` that programs reach for: the tensor class and checkpoints."""
