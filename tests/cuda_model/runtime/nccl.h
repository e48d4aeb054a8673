// As much of NCCL's binary interface as torch calls here, declared anew so that no headers of it are needed.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

constexpr int NCCL_VERSION = 22907;  // of torch 2.13.0's wheel

struct ncclComm;
typedef ncclComm* ncclComm_t;
struct ncclConfig;
struct ncclUniqueId {
  char internal[128];
};

enum ncclResult_t { ncclSuccess = 0, ncclSystemError = 2, ncclInvalidArgument = 4, ncclInvalidUsage = 5 };
enum ncclDataType_t {
  ncclInt8,
  ncclUint8,
  ncclInt32,
  ncclUint32,
  ncclInt64,
  ncclUint64,
  ncclFloat16,
  ncclFloat32,
  ncclFloat64,
  ncclBfloat16,
  ncclFloat8e4m3,
  ncclFloat8e5m2
};
enum ncclRedOp_t { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg };

size_t width_of(ncclDataType_t type);

// The reduction of `from`, one buffer per rank.
void reduce(void* to, const std::vector<const char*>& from, size_t number, ncclDataType_t type, ncclRedOp_t op);
