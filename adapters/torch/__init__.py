"""PyTorch: `torch.distributed` over collshim."""
