// Streams, events, and the device that serves them.
//
// Modelled: the order within a stream, events and what waits for them, host waits, priorities as numbers only.
// Not modelled: how many operations fit onto a GPU at a time (all do), and how long they take (nothing, but for spins).
#include <chrono>
#include <random>
#include <sstream>
#include <thread>

#include "model.h"

namespace model {

std::mutex& lock = *new std::mutex;
std::condition_variable& changed = *new std::condition_variable;
thread_local int current_device = 0;
std::vector<Stream*>& streams = *new std::vector<Stream*>;
std::deque<uint64_t>* nccl_kernels = new std::deque<uint64_t>[DEVICES];

static Stream* default_streams[DEVICES];
static bool stopping = false;
static uint64_t executed = 0;

void join(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (size_t i = 0; i < other.size(); i++)
    if (other[i] > into[i]) into[i] = other[i];
}

bool knows(const Clock& clock, int stream, uint64_t tick) { return (size_t)stream < clock.size() && clock[stream] >= tick; }

Clock& host() {
  static thread_local Clock* clock = new Clock;  // never freed: threads end in any order
  return *clock;
}

void learn(const Clock& clock) { join(host(), clock); }

// What threads that post have found done by asking. torch's allocator asks in whichever thread allocates next, and hands
// the memory to another one, behind a lock that is not seen here. Threads that only watch are left out: what they find
// out by chance must hide no race. But a wait of torch's newer engine does nothing if its watchdog has found the call
// over, which is right, and looks like a race unless the watchdog counts.
static Clock& found_done = *new Clock;
static thread_local bool posts = false;

static void find_done(const Clock& clock) {
  learn(clock);
  if (posts || setting("watchdog_tells")) join(found_done, clock);
}

Stream* new_stream(int device, int priority) {
  Stream* stream = new Stream;
  stream->id = (int)streams.size();
  stream->device = device;
  stream->priority = priority;
  stream->clock.resize(stream->id + 1);
  streams.push_back(stream);
  return stream;
}

Stream* stream_of(cudaStream_t handle) {
  if ((uint64_t)handle > 2) return (Stream*)handle;
  Stream*& stream = default_streams[current_device];  // of 0, and of the constants for the default streams
  if (!stream) stream = new_stream(current_device, 0);
  return stream;
}

void enqueue(Stream* stream, const std::shared_ptr<Operation>& operation) {
  posts = true;
  join(stream->clock, host());
  join(stream->clock, found_done);
  stream->clock[stream->id]++;
  touch(stream, *operation);
  stream->queue.push_back(operation);
  stream->posted++;
  if (!setting("held")) changed.notify_all();  // else the device would look, and hold the lock, for nothing
}

void post(Stream* stream, const Make& make) {
  start_device();
  if (stream->capture) {
    stream->clock[stream->id]++;
    stream->capture->operations.push_back(make);
  } else {
    enqueue(stream, make());
  }
}

// ---- the device

static bool is_able(Stream* stream) {
  if (stream->running || stream->queue.empty()) return false;
  auto& first = stream->queue.front();
  return !first->ready || first->ready();
}

static void end(Stream* stream, const Operation& operation) {
  stream->queue.pop_front();
  stream->done++;
  stream->running = false;
  executed++;
  auto& kernels = nccl_kernels[stream->device];
  for (auto i = kernels.begin(); operation.nccl && i != kernels.end(); ++i)
    if (*i == operation.nccl) {
      kernels.erase(i);
      break;
    }
  changed.notify_all();
}

static void serve() {
  std::unique_lock<std::mutex> held(lock);
  double seed = setting("seed");
  std::mt19937 chance((unsigned)seed);
  while (!stopping) {
    if (seed != setting("seed")) seed = setting("seed"), chance.seed((unsigned)seed);
    std::vector<Stream*> able;
    if (!setting("held"))
      for (Stream* stream : streams)
        if (is_able(stream)) able.push_back(stream);
    if (able.empty()) {
      changed.wait_for(held, std::chrono::milliseconds(5));
      continue;
    }
    Stream* stream = able[chance() % able.size()];
    std::shared_ptr<Operation> operation = stream->queue.front();
    stream->running = true;
    held.unlock();
    if (operation->run) operation->run();
    held.lock();
    end(stream, *operation);
  }
}

void start_device() {
  static std::once_flag once;
  std::call_once(once, [] { std::thread(serve).detach(); });
}

static std::string where_streams_stand() {
  std::ostringstream text;
  for (Stream* stream : streams)
    if (!stream->queue.empty())
      text << "; stream " << stream->id << " of device " << stream->device << " stands before "
           << stream->queue.front()->label << ", " << stream->queue.size() << " queued";
  return text.str();
}

bool waits(std::unique_lock<std::mutex>& held, const std::function<bool()>& over, const std::string& what) {
  using clock = std::chrono::steady_clock;
  auto began = clock::now();
  uint64_t seen = executed;
  while (!over()) {
    changed.wait_for(held, std::chrono::milliseconds(5));
    if (over()) break;
    if (seen != executed) began = clock::now(), seen = executed;  // something goes on
    if (clock::now() - began > std::chrono::duration<double>(setting("patience"))) {
      report("STUCK: " + what + where_streams_stand());
      return false;
    }
  }
  return true;
}
}  // namespace model

using namespace model;

extern "C" {
void model_stop() {
  LOCKED;
  stopping = true;
  changed.notify_all();
}

// ---- streams

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* made, unsigned, int priority) {
  LOCKED;
  *made = (cudaStream_t)new_stream(current_device, priority);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) { return cudaStreamCreateWithPriority(made, flags, 0); }
cudaError_t cudaStreamCreate(cudaStream_t* made) { return cudaStreamCreateWithPriority(made, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  LOCKED;
  *priority = stream_of(handle)->priority;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  LOCKED;
  Stream* stream = stream_of(handle);
  if (stream->capture) return failed(cudaErrorStreamCaptureUnsupported);
  if (stream->done < stream->posted) return cudaErrorNotReady;
  learn(stream->clock);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  LOCKED;
  Stream* stream = stream_of(handle);
  if (stream->capture) return failed(cudaErrorStreamCaptureUnsupported);
  uint64_t target = stream->posted;
  Clock clock = stream->clock;
  if (!waits(held, [&] { return stream->done >= target; }, "cudaStreamSynchronize")) return failed(cudaErrorLaunchTimeout);
  learn(clock);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  LOCKED;
  std::vector<std::pair<Stream*, uint64_t>> targets;
  Clock clock;
  for (Stream* stream : streams) {
    if (stream->device != current_device) continue;
    if (stream->capture) return failed(cudaErrorStreamCaptureUnsupported);
    targets.push_back({stream, stream->posted});
    join(clock, stream->clock);
  }
  auto over = [&] {
    for (auto& [stream, target] : targets)
      if (stream->done < target) return false;
    return true;
  };
  if (!waits(held, over, "cudaDeviceSynchronize")) return failed(cudaErrorLaunchTimeout);
  learn(clock);
  return cudaSuccess;
}

// ---- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned) {
  *made = (cudaEvent_t)new Event;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* made) { return cudaEventCreateWithFlags(made, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on) {
  LOCKED;
  Event* event = (Event*)handle;
  Stream* stream = stream_of(on);
  join(stream->clock, host());
  event->stream = stream;
  event->target = stream->posted;
  event->clock = stream->clock;
  event->capture = stream->capture;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) { return cudaEventRecord(event, stream); }
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  LOCKED;
  if (all_captures > captures && capture_mode == cudaStreamCaptureModeGlobal) {
    report("CAPTURE: an event is asked for while another thread captures");
    return failed(cudaErrorStreamCaptureUnsupported);
  }
  Event* event = (Event*)handle;
  if (event->capture) return failed(cudaErrorCapturedEvent);
  if (event->stream && event->stream->done < event->target) return cudaErrorNotReady;
  find_done(event->clock);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  LOCKED;
  Event* event = (Event*)handle;
  if (event->capture) return failed(cudaErrorCapturedEvent);
  Stream* stream = event->stream;
  uint64_t target = event->target;
  Clock clock = event->clock;
  if (stream && !waits(held, [&] { return stream->done >= target; }, "cudaEventSynchronize"))
    return failed(cudaErrorLaunchTimeout);
  learn(clock);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t awaited, unsigned) {
  LOCKED;
  Event* event = (Event*)awaited;
  Stream* stream = stream_of(handle);
  if (!event->stream) return cudaSuccess;
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) return failed(cudaErrorStreamCaptureMerge);
    stream->capture = event->capture;
    event->capture->streams.insert(stream);
  } else if (stream->capture) {
    return failed(cudaErrorStreamCaptureIsolation);
  }
  join(stream->clock, event->clock);
  Stream* other = event->stream;
  uint64_t target = event->target;
  if (stream->capture || other == stream || other->done >= target) return cudaSuccess;
  auto operation = std::make_shared<Operation>();
  operation->label = "a wait for stream " + std::to_string(other->id);
  operation->ready = [=] { return other->done >= target; };
  enqueue(stream, operation);
  return cudaSuccess;
}
}
