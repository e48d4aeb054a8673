/* Reductions of the ranks' numbers in rank order, with the same bits as in `arrays/arithmetic.py`: part of `_core.c`.
 *
 * This file does not use Python. The bits may differ only in NaNs, and in the sign of a zero that is a minimum or a
 * maximum, because in torch itself they depend on the position in the tensor. */
#ifndef COLLSHIM_REDUCTION_H
#define COLLSHIM_REDUCTION_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

/* A reduction is a number: its operation times 256, plus the code of the dtype. `layout.reduction` makes it. */
enum { SUM, PROD, MIN, MAX, BAND, BOR, BXOR, AVG };

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* float16 and bfloat16 are computed as floats; the result of every step is rounded to nearest, ties to even. */
static inline float from_float16(uint16_t number) {
    int32_t exponent = number & 0x7c00, magnitude = (number & 0x7fff) << 13;
    int32_t usual = magnitude + (exponent == 0x7c00 ? 0x70000000 : 0x38000000);
    int32_t tiny = (int32_t)bits_of((float)(number & 0x3ff) * 0x1p-24f);
    return float_of((uint32_t)(exponent == 0 ? tiny : usual) | (uint32_t)(number & 0x8000) << 16);
}

static inline uint16_t to_float16(float value) {
    uint32_t bits = bits_of(value), sign = bits & 0x80000000u, magnitude = bits ^ sign, half;
    if (magnitude > 0x7f800000u)
        half = 0x7e00u;
    else if (magnitude >= 0x47800000u)
        half = 0x7c00u;
    else if (magnitude < 0x38800000u)
        half = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u; /* the addition rounds */
    else
        half = (magnitude + 0xc8000fffu + (magnitude >> 13 & 1)) >> 13;
    return (uint16_t)(half | sign >> 16);
}

static inline float from_bfloat16(uint16_t number) { return float_of((uint32_t)number << 16); }

static inline uint16_t to_bfloat16(float value) {
    uint32_t bits = bits_of(value);
    return (uint16_t)(value != value ? 0x7fc0u : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

#define SAME(value) (value)

#define FOLD(type, wide, read, write, expression)                            \
    {                                                                        \
        type *total = out;                                                   \
        const type *first = pieces[0], *second = pieces[1];                  \
        for (uint64_t at = 0; at < nbytes / sizeof(type); at++) {            \
            wide a = read(first[at]), b = read(second[at]);                  \
            total[at] = (type)write(expression);                             \
        }                                                                    \
        for (uint32_t rank = 2; rank < size; rank++) {                       \
            const type *piece = pieces[rank];                                \
            for (uint64_t at = 0; at < nbytes / sizeof(type); at++) {        \
                wide a = read(total[at]), b = read(piece[at]);               \
                total[at] = (type)write(expression);                         \
            }                                                                \
        }                                                                    \
    }

#define DIVIDE(type, wide, read, write)                                                          \
    {                                                                                            \
        type *total = out;                                                                       \
        for (uint64_t at = 0; at < nbytes / sizeof(type); at++)                                  \
            total[at] = (type)write((wide)(read(total[at]) / (wide)size));                       \
    }

#define OPERANDS (int op, void *out, const void *const *pieces, uint32_t size, uint64_t nbytes)

/* A minimum or maximum is NaN if one of the numbers is. */
#define REALS(kind, name, type, wide, read, write)                                            \
    kind name OPERANDS {                                                                      \
        switch (op) {                                                                         \
        case SUM: FOLD(type, wide, read, write, a + b) return true;                           \
        case PROD: FOLD(type, wide, read, write, a * b) return true;                          \
        case MIN: FOLD(type, wide, read, write, ((a < b) | (a != a)) ? a : b) return true;    \
        case MAX: FOLD(type, wide, read, write, ((a > b) | (a != a)) ? a : b) return true;    \
        case AVG:                                                                             \
            FOLD(type, wide, read, write, a + b)                                              \
            DIVIDE(type, wide, read, write)                                                   \
            return true;                                                                      \
        default: return false;                                                                \
        }                                                                                     \
    }

/* Integers wrap around, so they are computed as unsigned ones, for which C defines it; an average is truncated towards
 * zero. */
#define INTEGERS(kind, name, type, bits, wide)                               \
    kind name OPERANDS {                                                     \
        switch (op) {                                                        \
        case SUM: FOLD(bits, wide, SAME, SAME, a + b) return true;           \
        case PROD: FOLD(bits, wide, SAME, SAME, a * b) return true;          \
        case MIN: FOLD(type, type, SAME, SAME, a < b ? a : b) return true;   \
        case MAX: FOLD(type, type, SAME, SAME, a > b ? a : b) return true;   \
        case BAND: FOLD(bits, bits, SAME, SAME, a & b) return true;          \
        case BOR: FOLD(bits, bits, SAME, SAME, a | b) return true;           \
        case BXOR: FOLD(bits, bits, SAME, SAME, a ^ b) return true;          \
        case AVG:                                                            \
            FOLD(bits, wide, SAME, SAME, a + b)                              \
            DIVIDE(type, type, SAME, SAME)                                   \
            return true;                                                     \
        default: return false;                                               \
        }                                                                    \
    }

REALS(static bool, of_floats, float, float, SAME, SAME)
REALS(static bool, of_doubles, double, double, SAME, SAME)
REALS(static bool, of_bfloat16, uint16_t, float, from_bfloat16, to_bfloat16)
INTEGERS(static bool, of_int8, int8_t, uint8_t, uint32_t)
INTEGERS(static bool, of_uint8, uint8_t, uint8_t, uint32_t)
INTEGERS(static bool, of_int16, int16_t, uint16_t, uint32_t)
INTEGERS(static bool, of_uint16, uint16_t, uint16_t, uint32_t)
INTEGERS(static bool, of_int32, int32_t, uint32_t, uint32_t)
INTEGERS(static bool, of_uint32, uint32_t, uint32_t, uint32_t)
INTEGERS(static bool, of_int64, int64_t, uint64_t, uint64_t)
INTEGERS(static bool, of_uint64, uint64_t, uint64_t, uint64_t)

/* Use vectors twice as wide, and the processor's own conversions, if it has them; the functions return how many numbers
 * were converted. */
#if defined(__x86_64__) && defined(__GNUC__)
#define WITH_AVX2 __attribute__((target("avx2,f16c")))

static bool has_avx2(void) { return __builtin_cpu_supports("avx2"); } /* such processors have f16c */

REALS(WITH_AVX2 static bool, of_bfloat16_avx2, uint16_t, float, from_bfloat16, to_bfloat16)

WITH_AVX2 static uint64_t widen_eights(float *to, const uint16_t *from, uint64_t count) {
    for (uint64_t at = 0; at < count / 8 * 8; at += 8)
        _mm256_storeu_ps(to + at, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + at))));
    return count / 8 * 8;
}

WITH_AVX2 static uint64_t narrow_eights(uint16_t *to, const float *from, uint64_t count) {
    for (uint64_t at = 0; at < count / 8 * 8; at += 8)
        _mm_storeu_si128((void *)(to + at), _mm256_cvtps_ph(_mm256_loadu_ps(from + at), _MM_FROUND_TO_NEAREST_INT));
    return count / 8 * 8;
}
#else
static bool has_avx2(void) { return false; }
static bool of_bfloat16_avx2 OPERANDS { return false; }
static uint64_t widen_eights(float *to, const uint16_t *from, uint64_t count) { return 0; }
static uint64_t narrow_eights(uint16_t *to, const float *from, uint64_t count) { return 0; }
#endif

static bool of_any_bfloat16 OPERANDS {
    return (has_avx2() ? of_bfloat16_avx2 : of_bfloat16)(op, out, pieces, size, nbytes);
}

static void widen(float *to, const uint16_t *from, uint64_t count) {
    uint64_t converted = has_avx2() ? widen_eights(to, from, count) : 0;
    for (uint64_t at = converted; at < count; at++) to[at] = from_float16(from[at]);
}

static void narrow(uint16_t *to, const float *from, uint64_t count) {
    uint64_t converted = has_avx2() ? narrow_eights(to, from, count) : 0;
    for (uint64_t at = converted; at < count; at++) to[at] = to_float16(from[at]);
}

#define CONVERTED 512 /* how many numbers are converted at a time */

static bool of_float16 OPERANDS {
    float sum[CONVERTED], piece[CONVERTED];
    const void *both[] = {sum, piece};
    for (uint64_t at = 0; at < nbytes / 2; at += CONVERTED) {
        uint64_t count = nbytes / 2 - at < CONVERTED ? nbytes / 2 - at : CONVERTED;
        uint16_t *total = (uint16_t *)out + at;
        for (uint32_t rank = 1; rank < size; rank++) {
            widen(sum, rank == 1 ? (const uint16_t *)pieces[0] + at : total, count);
            widen(piece, (const uint16_t *)pieces[rank] + at, count);
            if (!of_floats(op == AVG ? SUM : op, sum, both, 2, count * sizeof(float))) return false;
            narrow(total, sum, count);
        }
        if (op != AVG) continue;
        widen(sum, total, count);
        for (uint64_t one = 0; one < count; one++) sum[one] /= (float)size;
        narrow(total, sum, count);
    }
    return true;
}

typedef struct {
    char code;
    uint32_t nbytes; /* the size of a number */
    bool (*reduce) OPERANDS;
} numbers_t;

/* Return the kind of numbers that a reduction reduces; NULL if this file does not implement the reduction. */
static const numbers_t *numbers_of(uint32_t reduction) {
    static const numbers_t all[] = {
        {'f', 4, of_floats}, {'d', 8, of_doubles}, {'e', 2, of_float16}, {'E', 2, of_any_bfloat16},
        {'b', 1, of_int8},   {'B', 1, of_uint8},   {'h', 2, of_int16},  {'H', 2, of_uint16},
        {'i', 4, of_int32},  {'I', 4, of_uint32},  {'l', 8, of_int64},  {'L', 8, of_uint64},
    };
    for (size_t index = 0; index < sizeof all / sizeof *all && reduction >> 8 <= AVG; index++)
        if ((uint32_t)(unsigned char)all[index].code == (reduction & 255)) return &all[index];
    return NULL;
}

/* Reduce the pieces of two or more ranks; return whether this file can do so. `out` may be one of the first two. */
static bool reduce(uint32_t reduction, void *out, const void *const *pieces, uint32_t size, uint64_t nbytes) {
    const numbers_t *numbers = numbers_of(reduction);
    return numbers != NULL && numbers->reduce((int)(reduction >> 8), out, pieces, size, nbytes);
}

#endif
