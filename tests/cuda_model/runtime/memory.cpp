// Memory, and races: two operations that touch the same bytes, one of them writing, with no order between them.
//
// Modelled: device memory as memory of the host, that is never given back; copies; accesses of the last operations.
// Not modelled: peer access rules, host memory (what a kernel reads there is taken when it is posted), out of memory.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>

#include "model.h"

namespace model {

struct Block {
  uint64_t end;
  int device;
};
static auto& blocks = *new std::map<uint64_t, Block>;  // by where they begin

struct Access {
  Range range;
  int stream;
  uint64_t tick;
  std::string label;
};
static auto& accesses = *new std::deque<Access>;

void forget_accesses() { accesses.clear(); }

static std::string race(const Stream& stream, const Operation& operation, const Range& range, const Access& other) {
  std::ostringstream text;
  text << "RACE: " << operation.label << (range.writes ? " writes" : " reads") << " on stream " << stream.id << " ["
       << std::hex << range.begin << ", " << range.end << ") that " << other.label
       << (other.range.writes ? " writes" : " reads") << std::dec << " on stream " << other.stream
       << ", with no order between them";
  return text.str();
}

void touch(Stream* stream, const Operation& operation) {
  for (const Range& range : operation.ranges) {
    if (range.begin >= range.end) continue;
    for (const Access& other : accesses) {
      bool apart = other.range.end <= range.begin || range.end <= other.range.begin;
      if (apart || !(other.range.writes || range.writes) || other.stream == stream->id) continue;
      if (!knows(stream->clock, other.stream, other.tick)) report(race(*stream, operation, range, other));
    }
    accesses.push_back({range, stream->id, stream->clock[stream->id], operation.label});
  }
  while (accesses.size() > setting("accesses")) accesses.pop_front();
}

void* allocate(size_t bytes, int device) {
  size_t size = (bytes + 4095) / 4096 * 4096 + 4096;
  void* made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  blocks[(uint64_t)made] = {(uint64_t)made + size, device};
  return made;
}

bool is_device(const void* pointer, int* device) {
  auto found = blocks.upper_bound((uint64_t)pointer);
  if (found == blocks.begin()) return false;
  --found;
  if ((uint64_t)pointer >= found->second.end) return false;
  if (device) *device = found->second.device;
  return true;
}

static std::shared_ptr<Operation> copying(void* to, const void* from, size_t bytes) {
  auto operation = std::make_shared<Operation>();
  operation->label = "memcpy";
  std::shared_ptr<std::vector<char>> staged;
  if (is_device(from, nullptr))
    operation->ranges.push_back({(uint64_t)from, (uint64_t)from + bytes, false});
  else
    staged = std::make_shared<std::vector<char>>((const char*)from, (const char*)from + bytes);
  if (is_device(to, nullptr)) operation->ranges.push_back({(uint64_t)to, (uint64_t)to + bytes, true});
  operation->run = [=] { memmove(to, staged ? staged->data() : from, bytes); };
  return operation;
}
}  // namespace model

using namespace model;

extern "C" {
cudaError_t cudaMalloc(void** made, size_t bytes) {
  LOCKED;
  *made = allocate(bytes, current_device);
  return *made ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaHostAlloc(void** made, size_t bytes, unsigned) {
  *made = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* pointer) {
  free(pointer);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* all_bytes) {
  *free_bytes = *all_bytes = 8ull << 30;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* found, const void* pointer) {
  LOCKED;
  int device = -2;
  bool on = is_device(pointer, &device);
  found->type = on ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  found->device = device;
  found->devicePointer = on ? (void*)pointer : nullptr;
  found->hostPointer = nullptr;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind, cudaStream_t stream) {
  LOCKED;
  post(stream_of(stream), [=] { return copying(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  cudaMemcpyAsync(to, from, bytes, kind, 0);
  return cudaStreamSynchronize(0);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  LOCKED;
  post(stream_of(stream), [=] {
    auto operation = std::make_shared<Operation>();
    operation->label = "memset";
    operation->ranges = {{(uint64_t)to, (uint64_t)to + bytes, true}};
    operation->run = [=] { memset(to, value, bytes); };
    return operation;
  });
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) { return cudaMemsetAsync(to, value, bytes, 0); }
}
