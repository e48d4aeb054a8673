// Capture and replay of CUDA graphs.
//
// Modelled: which streams join a capture, and that all have been waited for at its end; that other threads must not ask
// for events meanwhile, in the strictest mode; a replay posts the captured operations, made afresh, on one stream, in the
// order of the capture; objects of the user's, which live as long as a graph that retains them.
// Not modelled: branches of a graph that run side by side, node parameters, conditional nodes.
#include <utility>

#include "model.h"

using namespace model;

static unsigned long long graphs = 0;

struct UserObject {
  void* pointer;
  cudaHostFn_t destroy;
  unsigned references;
};

static cudaError_t release(cudaUserObject_t handle, unsigned count) {
  auto* object = (UserObject*)handle;
  {
    LOCKED;
    object->references -= count;
    if (object->references) return cudaSuccess;
  }
  object->destroy(object->pointer);  // frees tensors, for which the allocator takes the lock
  delete object;
  return cudaSuccess;
}

static cudaError_t drop(Graph* graph) {
  std::vector<std::pair<cudaUserObject_t, unsigned>> objects;
  {
    LOCKED;
    if (--graph->holders == 0) objects.swap(graph->objects);
  }
  for (auto [object, count] : objects) release(object, count);
  return cudaSuccess;
}

namespace model {
thread_local enum cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
thread_local int captures = 0;
int all_captures = 0;
}  // namespace model

extern "C" {
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  std::swap(capture_mode, *mode);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus* status) {
  LOCKED;
  *status = stream_of(handle)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, enum cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                                     size_t* number) {
  LOCKED;
  Graph* capture = stream_of(handle)->capture;
  *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (capture && id) *id = capture->id;
  if (capture && graph) *graph = (cudaGraph_t)capture;
  if (nodes) *nodes = nullptr;
  if (edges) *edges = nullptr;
  if (number) *number = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
  LOCKED;
  Stream* stream = stream_of(handle);
  Graph* graph = new Graph;
  graph->streams.insert(stream);
  graph->id = ++graphs;
  graph->forbids = mode == cudaStreamCaptureModeGlobal;
  captures += graph->forbids;
  all_captures += graph->forbids;
  stream->capture = graph;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*,
                                          size_t, enum cudaStreamCaptureMode) {
  return failed(cudaErrorNotSupported);
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* made) {
  LOCKED;
  Stream* origin = stream_of(handle);
  Graph* graph = origin->capture;
  bool joined = true;
  captures -= graph->forbids;
  all_captures -= graph->forbids;
  for (Stream* stream : graph->streams) {
    stream->capture = nullptr;
    joined = joined && knows(origin->clock, stream->id, stream->clock[stream->id]);
  }
  *made = joined ? (cudaGraph_t)graph : nullptr;
  if (joined) return cudaSuccess;
  report("CAPTURE: a stream that joined was not waited for");
  return failed(cudaErrorStreamCaptureUnjoined);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*, const cudaGraphEdgeData*, size_t, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  LOCKED;
  ((Graph*)graph)->holders++;
  *made = (cudaGraphExec_t)graph;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
  LOCKED;
  Stream* stream = stream_of(handle);
  for (auto& make : ((Graph*)graph)->operations) post(stream, make);
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* number) {
  *number = ((Graph*)graph)->operations.size();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return drop((Graph*)graph); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return drop((Graph*)graph); }
cudaError_t cudaUserObjectCreate(cudaUserObject_t* made, void* pointer, cudaHostFn_t destroy, unsigned references, unsigned) {
  *made = (cudaUserObject_t) new UserObject{pointer, destroy, references};
  return cudaSuccess;
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  LOCKED;
  ((UserObject*)object)->references += count;
  return cudaSuccess;
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) { return release(object, count); }
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags) {
  LOCKED;
  if (!(flags & cudaGraphUserObjectMove)) ((UserObject*)object)->references += count;
  ((Graph*)graph)->objects.push_back({object, count});
  return cudaSuccess;
}
}
