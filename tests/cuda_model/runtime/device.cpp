// The devices themselves: how many there are, what they say of themselves, and what is launched on them.
//
// aten's kernels never come here: tests/cuda_model/kernels.py takes their place above CUDA and posts what they compute
// (model_enqueue). The one kernel that is launched here keeps its stream busy. Any other is a report.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "model.h"

using namespace model;

static thread_local cudaError_t last_error = cudaSuccess;

namespace model {
cudaError_t failed(cudaError_t error) { return last_error = error; }
}  // namespace model

static auto& kernel_names() {
  static auto* names = new std::unordered_map<const void*, std::string>;
  return *names;
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
static thread_local std::vector<Configuration> configurations;

static std::shared_ptr<Operation> spinning(double seconds) {
  using clock = std::chrono::steady_clock;
  auto operation = std::make_shared<Operation>();
  operation->label = "a spin";
  auto begun = std::make_shared<clock::time_point>();
  operation->ready = [=] {
    if (begun->time_since_epoch().count() == 0) *begun = clock::now();
    return clock::now() - *begun > std::chrono::duration<double>(seconds);
  };
  return operation;
}

static cudaError_t launch(const void* function, void** arguments, cudaStream_t stream) {
  auto found = kernel_names().find(function);
  std::string name = found == kernel_names().end() ? "an unknown kernel" : found->second;
  LOCKED;
  if (name.find("spin_kernel") == std::string::npos) {
    report("NOT MODELLED: the kernel " + name);
    return failed(cudaErrorInvalidDeviceFunction);
  }
  double seconds = *(int64_t*)arguments[0] / 1.5e9 * setting("busy");
  post(stream_of(stream), [=] { return spinning(seconds); });
  return cudaSuccess;
}

extern "C" {
// An operation of the caller's: `ranges` has pairs of begin and end, of what it reads, and then of what it writes.
void model_enqueue(void* stream, int device, void (*call)(long), long number, const uint64_t* ranges, int reads, int writes,
                   const char* label) {
  LOCKED;
  int before = current_device;
  current_device = device;
  Stream* on = stream_of((cudaStream_t)stream);
  current_device = before;
  std::vector<Range> touched;
  for (int i = 0; i < reads + writes; i++) touched.push_back({ranges[2 * i], ranges[2 * i + 1], i >= reads});
  std::string name = label;
  post(on, [=] {
    auto operation = std::make_shared<Operation>();
    operation->label = name;
    operation->ranges = touched;
    operation->run = [=] { call(number); };
    return operation;
  });
}

cudaError_t cudaGetDeviceCount(int* number) {
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");  // here "none" or "all"; torch reads more of it itself
  bool hidden = visible && !*visible;
  *number = hidden ? 0 : (int)setting("devices");
  return hidden ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* found, int device) {
  memset(found, 0, sizeof *found);
  strcpy(found->name, "Simulated device");
  found->uuid.bytes[15] = (char)(device + 1);
  found->totalGlobalMem = 8ull << 30;
  found->major = 9;
  found->multiProcessorCount = 132;
  found->warpSize = 32;
  found->maxThreadsPerBlock = 1024;
  found->maxThreadsPerMultiProcessor = 2048;
  found->sharedMemPerBlock = 49152;
  found->regsPerBlock = 65536;
  found->maxThreadsDim[0] = found->maxThreadsDim[1] = 1024;
  found->maxThreadsDim[2] = 64;
  found->maxGridSize[0] = 2147483647;
  found->maxGridSize[1] = found->maxGridSize[2] = 65535;
  found->unifiedAddressing = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrMultiProcessorCount ? 132 : attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  snprintf(text, size, "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorName(cudaError_t error) { return error ? "cudaErrorSimulated" : "cudaSuccess"; }
const char* cudaGetErrorString(cudaError_t error) {
  static thread_local char text[160];
  const char* more = error == cudaErrorInvalidDeviceFunction
                         ? ": a kernel that is not modelled; aten's are, where pytest is run with -p tests.cuda_model.plugin"
                         : "";
  snprintf(text, sizeof text, "simulated CUDA error %d%s", error, more);
  return text;
}

// ---- what is launched

void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* entry, char*, const char* name, int, void*, void*, void*, void*, int*) {
  kernel_names()[entry] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *(cudaStream_t*)stream = last.stream;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void** arguments, size_t, cudaStream_t stream) {
  return launch(function, arguments, stream);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void** arguments, size_t, cudaStream_t stream) {
  return launch((const void*)kernel, arguments, stream);
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = (cudaKernel_t)function;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* function, void** arguments) {
  return launch(function, arguments, configuration->stream);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  LOCKED;
  post(stream_of(stream), [=] {
    auto operation = std::make_shared<Operation>();
    operation->label = "a function of the host";
    operation->run = [=] { function(data); };
    return operation;
  });
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* found, const void*) {
  memset(found, 0, sizeof *found);
  found->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, enum cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* number, const void*, int, size_t) {
  *number = 2;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* number, const void*, int, size_t, unsigned) {
  *number = 2;
  return cudaSuccess;
}
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, unsigned long long,
                                             enum cudaDriverEntryPointQueryResult* status) {
  *function = nullptr;
  if (status) *status = cudaDriverEntryPointSymbolNotFound;
  return cudaErrorSymbolNotFound;
}
}
