"""TensorFlow: ``tf.distribute`` and its collectives over collshim; ``import collshim.tensorflow as tf``.

    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])

    @tf.function
    def gather_value():
        context = tf.distribute.get_replica_context()
        return context.all_gather(tf.constant([1, 2, 3]), axis=0)

    strategy.run(gather_value)  # PerReplica of [1, 2, 3, 1, 2, 3] on both replicas

``MirroredStrategy`` replicas are threads of this process, one per named device; ``MultiWorkerMirroredStrategy``
replicas are the ranks of the world (``torchrun``, ``collshim.launch``, ``TF_CONFIG``); ``OneDeviceStrategy`` and the
default strategy have one replica. Around them are the other parts of a training loop: ``tf.Tensor``, a subclass of
torch's, and the functions on it; ``tf.Variable``, ``tf.GradientTape``, ``tf.nest``, ``tf.function``; and ``tf.keras``,
if Keras 3 is installed. Collectives also take torch tensors, NumPy arrays and everything else that collshim takes: a
result has the input's type, except that NumPy's arrays become tensors, as in TensorFlow. Data stays where it is,
whatever a device is called.

The same as TensorFlow 2.21 (recorded on CPU, unless a line says otherwise): names, signatures, structures in and out,
``PerReplica`` and where it is unwrapped, values, shapes, dtypes (the MEAN of integers over several replicas is
float64), the dtypes that several replicas may exchange (``all_gather``: float16, 32, 64 and int32, 64, else TypeError;
``all_reduce``: those and bfloat16, else InvalidArgumentError; ``Strategy.gather`` as ``all_gather``;
``Strategy.reduce`` between workers as ``all_reduce``, under ``MirroredStrategy`` all but bool; ``all_gather`` and
``all_reduce`` over ``cross_device_ops`` every dtype and all but bool), gradients (``all_gather``: all replicas'
gradients summed and cut; ``all_reduce``: the same reduction; nests are one operation, so unused outputs send zeros),
wrong-context errors, and that replicas of a ``MirroredStrategy`` run one at a time: 0 up to its first collective or
merge call, then 1, and so on, also in the backward; the variables that 0 makes are those of the others.

Differences, and their reasons:

- If all replicas of a ``MirroredStrategy`` pass the same object, it is reduced and gathered like any other value.
  TensorFlow takes it for one value and returns it unchanged: ``run(lambda: ctx.all_reduce("SUM", t))`` gives ``t``, not
  ``2 * t``.
- If the replicas' dtypes differ, it is an InvalidArgumentError everywhere; TensorFlow raises InternalError for float32
  with float64 in ``all_gather``, ``all_reduce`` and ``gather`` under ``MirroredStrategy``.
- If the replicas' ``axis`` or ``reduce_op`` differ, it is an InvalidArgumentError; TensorFlow takes the first replica's
  under ``MirroredStrategy``. Between workers axes and numbers of leaves are not compared: shapes that do not fit are
  found, and leaves that no other worker takes are a mismatch with the next call.
- Lists that mix int32 with other dtypes are reduced; under ``MirroredStrategy`` TensorFlow raises ValueError.
- There is one rule for ``axis`` and scalars, for all dtypes: negative axes, axes out of range and scalars are refused
  with an error that is both ``tf.errors.InvalidArgumentError`` and ValueError and has the words of both of TensorFlow's
  errors. TensorFlow refuses float32 with a ValueError, int32 under ``MirroredStrategy`` with an InvalidArgumentError,
  and accepts negative axes for int32.
- If shapes do not fit together, it is an InvalidArgumentError with "Shape mismatch in the collective", for every dtype.
- ``all_reduce([])`` is ``[]``, as is a batch of no pairs; TensorFlow raises AttributeError under two strategies, and
  IndexError. If ``reduce_op`` is neither a ``ReduceOp`` nor a string, it is an AssertionError under every strategy;
  TensorFlow takes it for SUM under some.
- Python numbers and NumPy's arrays become tensors as in ``tf.constant``, everywhere; TensorFlow raises AttributeError
  or ValueError under some strategies.
- ``Strategy.gather`` of a nest gathers each leaf; TensorFlow's ``MirroredStrategy.gather([v, v])`` returns the first
  replica's components unchanged. ``MultiWorkerMirroredStrategy.reduce`` takes nests, as ``MirroredStrategy``'s does.
  ``gather`` of ``PerReplica`` slices is refused, while TensorFlow makes them dense.
- On one replica ``run`` returns the function's result; TensorFlow turns list subclasses into lists there too, under
  some strategies. A defaultdict stays one; TensorFlow raises TypeError under ``MirroredStrategy``.
- ``run`` raises a replica's error itself, and the error wakes the other replicas; those that have not begun do not.
- ``MirroredStrategy.reduce``, ``gather`` and ``extended.reduce_to`` are ordinary torch arithmetic: gradients pass
  through all of them. TensorFlow has no gradient for ``gather``.
- A tape around ``run`` records the replicas of a ``MirroredStrategy``, and the gradient of a variable is the sum of its
  copies' gradients; in TensorFlow it is None.
- Gradients between replicas are torch's: every replica must ask its tape for them, or call ``backward``, inside the
  function that ``run`` calls.
- dtypes are torch's objects: ``tf.float32`` is ``torch.float32``. Tensors of different dtypes mix in operators as in
  torch; ``tf.add`` and the other functions refuse them, as TensorFlow does. Tensors may be keys and in sets.
- A tensor that a tape watches is recorded from then on, also after the tape's block. ``Variable.assign`` returns the
  variable; TensorFlow's returns an UnreadVariable. Gradients of ``tf.gather`` are dense.
- With one replica a collective returns a copy; TensorFlow, whose tensors cannot be changed, returns the value itself.
- ``tf.function`` runs its function as written, every time: a side effect happens at each call.
- ``tf.constant`` makes tensors of TensorFlow's dtypes: int32 for Python ints (int64 if they do not fit), float32 for
  floats. Text becomes a tensor of ``tf.string``, of a class of its own: it prepares input, and replicas do not exchange
  it.
- ``variable[0].assign(x)`` outside the replicas changes that part of every copy; TensorFlow's changes the first
  copy alone.
- Between workers a variable with the aggregation ONLY_FIRST_REPLICA takes the first worker's value; TensorFlow's
  workers each keep their own.

`tf.raw_ops` has only its collectives; docs/tensorflow.md lists their differences.

Not covered, so that the names do not resolve: ``Strategy.configure`` and ``update_config_proto``, strategies for
parameter servers and for central storage, cluster resolvers of clouds, the errors of tracing
(``tf.errors.OperatorNotAllowedInGraphError``), operations on ragged and sparse tensors, SavedModels,
and graphs and sessions of ``tf.compat.v1``.
A strategy takes user-defined ``CrossDeviceOps``, and reduces by itself all the same. The boundary is what TensorFlow's
tutorials of distributed training use, and what programs beside them use of ``tf.distribute``.
"""

from __future__ import annotations

from importlib import import_module
from logging import Logger, getLogger
from typing import Any

from collshim.adapting.absent import refuse_everywhere, saying
from collshim.errors import CollshimError, also
from collshim.tensorflow import (
    autograph,
    compat,
    config,
    data,
    debugging,
    distribute,
    dtypes,
    errors,
    experimental,
    io,
    linalg,
    lookup,
    math,
    nest,
    nn,
    ragged,
    random,
    raw_ops,
    saved_model,
    sparse,
    strings,
    summary,
    tensor_functions,
    test,
    tpu,
    train,
    types,
    version,
)
from collshim.tensorflow.composites import RaggedTensor, SparseTensor
from collshim.tensorflow.constants import constant
from collshim.tensorflow.control import (
    case,
    cond,
    control_dependencies,
    device,
    executing_eagerly,
    get_static_value,
    group,
    init_scope,
    is_tensor,
    map_fn,
    no_op,
    switch_case,
    while_loop,
)
from collshim.tensorflow.control import tuple_ as tuple
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank
from collshim.tensorflow.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from collshim.tensorflow.functions import function, identity
from collshim.tensorflow.gradient_tape import GradientTape, UnconnectedGradients
from collshim.tensorflow.graphs import gradients, recompute_grad
from collshim.tensorflow.indexed_slices import IndexedSlices
from collshim.tensorflow.initial_values import (
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from collshim.tensorflow.module import Module
from collshim.tensorflow.name_scopes import get_current_name_scope, name_scope
from collshim.tensorflow.printing import print
from collshim.tensorflow.python_functions import custom_gradient, identity_n, numpy_function, py_function
from collshim.tensorflow.specs import RaggedTensorSpec, SparseTensorSpec, TensorSpec, TypeSpec, type_spec_from_value
from collshim.tensorflow.tensor import Tensor
from collshim.tensorflow.tensor_array import TensorArray
from collshim.tensorflow.tensor_functions import *  # noqa: F403
from collshim.tensorflow.tensor_shape import TensorShape
from collshim.tensorflow.variable import Variable
from collshim.tensorflow.variable_creators import variable_creator_scope
from collshim.tensorflow.variable_modes import VariableAggregation, VariableSynchronization

__all__ = [
    "Assert",
    "DType",
    "GradientTape",
    "IndexedSlices",
    "Module",
    "RaggedTensor",
    "RaggedTensorSpec",
    "SparseTensor",
    "SparseTensorSpec",
    "Tensor",
    "TensorArray",
    "TensorShape",
    "TensorSpec",
    "TypeSpec",
    "UnconnectedGradients",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "as_dtype",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "autograph",
    "bfloat16",
    "bool",
    "case",
    "compat",
    "complex64",
    "complex128",
    "cond",
    "config",
    "constant",
    "constant_initializer",
    "control_dependencies",
    "convert_to_tensor",
    "custom_gradient",
    "data",
    "debugging",
    "device",
    "distribute",
    "double",
    "dtypes",
    "errors",
    "executing_eagerly",
    "experimental",
    "float16",
    "float32",
    "float64",
    "function",
    "get_current_name_scope",
    "get_logger",
    "get_static_value",
    "gradients",
    "group",
    "half",
    "identity",
    "identity_n",
    "init_scope",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "is_tensor",
    "linalg",
    "lookup",
    "map_fn",
    "math",
    "name_scope",
    "nest",
    "newaxis",
    "nn",
    "no_op",
    "numpy_function",
    "ones_initializer",
    "print",
    "py_function",
    "ragged",
    "random",
    "random_normal_initializer",
    "random_uniform_initializer",
    "raw_ops",
    "recompute_grad",
    "saved_model",
    "sparse",
    "string",
    "strings",
    "summary",
    "switch_case",
    "test",
    "tpu",
    "train",
    "tuple",
    "type_spec_from_value",
    "types",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variable_creator_scope",
    "version",
    "while_loop",
    "zeros_initializer",
]

__all__ += tensor_functions.__all__

__version__ = version.VERSION
newaxis = None

_absent = saying(__name__)
_OF_KERAS = ("initializers", "losses", "metrics", "optimizers")


def get_logger() -> Logger:
    """Return the logger "tensorflow"."""
    return getLogger("tensorflow")


def __getattr__(name: str) -> Any:
    if name != "keras" and name not in _OF_KERAS:
        return _absent(name)
    try:  # imported at the first use, as that takes seconds
        module = import_module(f"{__name__}.keras")
        return module if name == "keras" else getattr(module, name)
    except ImportError as error:
        raise also(CollshimError, AttributeError)(f"module {__name__!r} has no attribute {name!r}: {error}") from error


refuse_everywhere(__name__)
