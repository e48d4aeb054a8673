"""The parts of ``oneflow.framework`` that programs use: the tensor class and checkpoints."""
