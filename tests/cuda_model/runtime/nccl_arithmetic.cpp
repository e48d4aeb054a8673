// What NCCL's reductions come to: exact for integers; floats are computed in double and rounded once.
//
// Not modelled: the order in which NCCL adds, and its rounding in between. An average multiplies by 1/ranks before it
// adds, as NCCL's does, so that it overflows only where the average itself would.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "nccl.h"

size_t width_of(ncclDataType_t type) {
  static const size_t widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return widths[type];
}

// A float of one byte: e4m3 has no infinity and one NaN of each sign, e5m2 has both as IEEE 754 does.
struct Small {
  int exponent, mantissa, bias;
  bool finite;
};
static const Small E4M3 = {4, 3, 7, true}, E5M2 = {5, 2, 15, false};

static float from_small(uint8_t bits, const Small& kind) {
  int exponent = (bits >> kind.mantissa) & ((1 << kind.exponent) - 1), mantissa = bits & ((1 << kind.mantissa) - 1);
  float sign = bits >> 7 ? -1 : 1;
  if (kind.finite ? (bits & 0x7f) == 0x7f : exponent == (1 << kind.exponent) - 1)
    return !kind.finite && mantissa == 0 ? sign * INFINITY : NAN;
  float fraction = (float)mantissa / (1 << kind.mantissa);
  return sign * (exponent ? ldexpf(1 + fraction, exponent - kind.bias) : ldexpf(fraction, 1 - kind.bias));
}

static uint8_t to_small(float value, const Small& kind) {
  int best = 0;
  float error = INFINITY;
  for (int bits = 0; bits < 256; bits++) {
    float other = from_small(bits, kind);
    if (fabsf(other - value) < error) error = fabsf(other - value), best = bits;
  }
  return best;
}

template <class T>
static T at(const void* from, size_t i) {
  T value;
  memcpy(&value, (const T*)from + i, sizeof value);
  return value;
}

static double load(const void* from, size_t i, ncclDataType_t type) {
  switch (type) {
    case ncclFloat16: return (double)at<_Float16>(from, i);
    case ncclFloat32: return at<float>(from, i);
    case ncclFloat64: return at<double>(from, i);
    case ncclFloat8e4m3: return from_small(at<uint8_t>(from, i), E4M3);
    case ncclFloat8e5m2: return from_small(at<uint8_t>(from, i), E5M2);
    default: break;
  }
  uint32_t bits = (uint32_t)at<uint16_t>(from, i) << 16;
  return at<float>(&bits, 0);
}

static void store(void* to, size_t i, ncclDataType_t type, double value) {
  float single = (float)value;
  switch (type) {
    case ncclFloat16: ((_Float16*)to)[i] = (_Float16)value; return;
    case ncclFloat32: ((float*)to)[i] = single; return;
    case ncclFloat64: ((double*)to)[i] = value; return;
    case ncclFloat8e4m3: ((uint8_t*)to)[i] = to_small(single, E4M3); return;
    case ncclFloat8e5m2: ((uint8_t*)to)[i] = to_small(single, E5M2); return;
    default: break;
  }
  uint32_t bits = at<uint32_t>(&single, 0);
  ((uint16_t*)to)[i] = (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <class T>
static T combined(T one, T other, ncclRedOp_t op) {
  switch (op) {
    case ncclProd: return (T)(one * other);
    case ncclMax: return one > other ? one : other;
    case ncclMin: return one < other ? one : other;
    default: return (T)(one + other);
  }
}

template <class T>
static void reduce_integers(void* to, const std::vector<const char*>& from, size_t number, ncclRedOp_t op) {
  for (size_t i = 0; i < number; i++) {
    T value = at<T>(from[0], i);
    for (size_t rank = 1; rank < from.size(); rank++) value = combined(value, at<T>(from[rank], i), op);
    ((T*)to)[i] = op == ncclAvg ? (T)(value / (T)from.size()) : value;
  }
}

static void reduce_floats(void* to, const std::vector<const char*>& from, size_t number, ncclDataType_t type, ncclRedOp_t op) {
  double factor = op == ncclAvg ? 1.0 / from.size() : 1;
  for (size_t i = 0; i < number; i++) {
    double value = load(from[0], i, type) * factor;
    for (size_t rank = 1; rank < from.size(); rank++) value = combined(value, load(from[rank], i, type) * factor, op);
    store(to, i, type, value);
  }
}

void reduce(void* to, const std::vector<const char*>& from, size_t number, ncclDataType_t type, ncclRedOp_t op) {
  if (from.size() == 1) {
    memcpy(to, from[0], number * width_of(type));
    return;
  }
  switch (type) {
    case ncclInt8: return reduce_integers<int8_t>(to, from, number, op);
    case ncclUint8: return reduce_integers<uint8_t>(to, from, number, op);
    case ncclInt32: return reduce_integers<int32_t>(to, from, number, op);
    case ncclUint32: return reduce_integers<uint32_t>(to, from, number, op);
    case ncclInt64: return reduce_integers<int64_t>(to, from, number, op);
    case ncclUint64: return reduce_integers<uint64_t>(to, from, number, op);
    default: return reduce_floats(to, from, number, type, op);
  }
}
