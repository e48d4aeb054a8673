// What the parts of the simulated CUDA share.
//
// A stream is a queue of operations. One thread, the device, takes whatever stands first in its stream and is ready, in
// an order of chance. A vector clock per stream, event and host thread says which operations are ordered: it is advanced
// when an operation is posted, so that what is found does not depend on when the device came to it.
#pragma once
#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace model {

constexpr int DEVICES = 64;

// ---- order

using Clock = std::vector<uint64_t>;  // by stream: how many of its operations are known to come before
void join(Clock& into, const Clock& other);
bool knows(const Clock& clock, int stream, uint64_t tick);
Clock& host();                   // what the calling thread of the host has waited for
void learn(const Clock& clock);  // the calling thread has waited for this

// ---- operations

struct Range {
  uint64_t begin, end;
  bool writes;
};

struct Operation {
  std::string label;
  std::function<bool()> ready;  // asked with the lock held, at the head of its stream; empty: at once
  std::function<void()> run;    // called without the lock
  std::vector<Range> ranges;    // the memory it touches
  uint64_t nccl = 0;            // its number among the NCCL kernels of its device; 0 for others
};
using Make = std::function<std::shared_ptr<Operation>()>;  // makes a fresh one for each replay of a graph

struct Graph;

struct Stream {
  int id = 0, device = 0, priority = 0;
  std::deque<std::shared_ptr<Operation>> queue;
  uint64_t posted = 0, done = 0;
  bool running = false;
  Clock clock;
  Graph* capture = nullptr;  // where its operations go instead of the queue
};

struct Event {
  Stream* stream = nullptr;
  uint64_t target = 0;  // how many operations of the stream it waits for
  Clock clock;
  Graph* capture = nullptr;
};

struct Graph {
  std::set<Stream*> streams;
  bool forbids = false;  // other threads to ask for events meanwhile: CUDA's strictest mode
  std::vector<Make> operations;
  unsigned long long id = 0;
  int holders = 1;  // the graph itself, and what was instantiated from it
  std::vector<std::pair<cudaUserObject_t, unsigned>> objects;  // kept while it has holders, and how often
};

// ---- the one lock, and what it guards

extern std::mutex& lock;
extern std::condition_variable& changed;
extern thread_local int current_device;
extern std::vector<Stream*>& streams;
extern std::deque<uint64_t>* nccl_kernels;  // by device: the numbers of those that are not over

extern thread_local enum cudaStreamCaptureMode capture_mode;  // the calling thread's
extern thread_local int captures;                            // that it has begun and not ended, of those that forbid
extern int all_captures;

Stream* stream_of(cudaStream_t handle);
Stream* new_stream(int device, int priority);
void post(Stream* stream, const Make& make);
void enqueue(Stream* stream, const std::shared_ptr<Operation>& operation);
void start_device();

// A wait of the host. A report and false where `over` does not come true within the model's patience.
bool waits(std::unique_lock<std::mutex>& held, const std::function<bool()>& over, const std::string& what);

// ---- memory

void* allocate(size_t bytes, int device);
bool is_device(const void* pointer, int* device);
void touch(Stream* stream, const Operation& operation);
void forget_accesses();

// ---- what tests read and set

void report(const std::string& text);
double setting(const char* name);
void count(const char* what);

cudaError_t failed(cudaError_t error);
}  // namespace model

#define LOCKED std::unique_lock<std::mutex> held(model::lock)
