"""Names that have another meaning in torch under the same path, and names of OneFlow without a counterpart.

Each has one sentence about what to do instead. Paths are relative to ``oneflow``.
"""

from __future__ import annotations

from collections.abc import Mapping

from collshim.oneflow.global_tensors import INSTEAD

_GRAPH = "OneFlow's static graphs are not compiled here: call modules and losses in a loop"
_DATA = "OneFlow's own data pipelines are not covered: read data with flow.utils.data.DataLoader"
_QUANTIZATION = "OneFlow's quantization is not covered: train in float32, or quantize with torch.ao"
_EMBEDDING = "OneEmbedding's tables are not covered: use flow.nn.Embedding"
_BUFFER = "tensor buffers are not covered: keep a list of tensors"
_TORCH_ONLY = "OneFlow 0.9.0 has no such name: import torch's"
_PARALLEL = "OneFlow has only DistributedDataParallel and flow.comm: use these"

REFUSED: Mapping[str, str] = {
    "compile": _TORCH_ONLY,
    "fx": _TORCH_ONLY,
    "ao": _TORCH_ONLY,
    "quantization": _QUANTIZATION,
    "onnx": _TORCH_ONLY,
    "package": _TORCH_ONLY,
    "futures": _TORCH_ONLY,
    "export": _TORCH_ONLY,
    "classes": _TORCH_ONLY,
    "ops": _TORCH_ONLY,
    "library": _TORCH_ONLY,
    "version": "the imitated release is flow.__version__",
    "mock_torch": "collshim.oneflow is based on torch: import torch itself",
    "one_embedding": _EMBEDDING,
    "asyncs": "OneFlow's asynchronous threads are not covered: use threading",
    "FunctionConfig": _GRAPH,
    "function_config": _GRAPH,
    "decode_onerec": _DATA,
    "record": _DATA,
    "tensor_buffer": _BUFFER,
    "gen_tensor_buffer": _BUFFER,
    "tensor_buffer_to_tensor": _BUFFER,
    "tensor_to_tensor_buffer": _BUFFER,
    "tensor_buffer_to_list_of_tensors": _BUFFER,
    "distributed_partial_fc_sample": INSTEAD,
    "stateful_op": "OneFlow's kernels cannot be called by name: call the function itself",
    "scope_util": _GRAPH,
    "session_ctx": _GRAPH,
    "nn.DataParallel": _PARALLEL,
    "nn.SyncBatchNorm": "OneFlow 0.9.0 has none: use flow.nn.BatchNorm2d, whose buffers are broadcast from rank 0",
    "nn.AllReduce": "call flow.comm.all_reduce in the module's forward",
    "nn.DistributedPariticalFCSample": INSTEAD,
    "nn.FusedMLP": "build it from flow.nn.Linear and flow.nn.ReLU",
    "nn.CombinedMarginLoss": "write the margin with flow.where and flow.nn.CrossEntropyLoss",
    "nn.optimizer": "use flow.optim",
    "nn.quantized": _QUANTIZATION,
    "nn.qat": _QUANTIZATION,
    **{
        f"nn.{name}": _QUANTIZATION
        for name in (
            *("FakeQuantization", "MinMaxObserver", "MovingAverageMinMaxObserver", "Quantization"),
            *("QatConv1d", "QatConv2d", "QatConv3d"),
        )
    },
    **{
        f"nn.{name}": _DATA
        for name in (
            *("COCOReader", "CoinFlip", "CropMirrorNormalize", "GPTIndexedBinDataReader", "OneRecReader", "RawReader"),
            *("OFRecordBytesDecoder", "OFRecordImageDecoder", "OFRecordImageDecoderRandomCrop", "OFRecordReader"),
            *("OFRecordImageGpuDecoderRandomCropResize", "OFRecordRawDecoder", "OfrecordRawDecoder", "OfrecordReader"),
            "image",
        )
    },
    "optim.LAMB": "it is not covered: use flow.optim.AdamW",
    "optim.swa_utils": _TORCH_ONLY,
}


def below(table: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the entries directly below ``path``, by their last name; ``""`` is the top."""
    prefix = f"{path}." if path else ""
    names = {name.removeprefix(prefix): text for name, text in table.items() if name.startswith(prefix)}
    return {name: text for name, text in names.items() if "." not in name}
