/* Prints a checksum of every reduction of float16 and bfloat16, over all numbers of 16 bits in turn: processors agree on
 * all results but the bits of a NaN and the sign of a zero. */
#include <stdio.h>

#include "reduction.h"

#define NUMBERS 65536

static uint16_t first[NUMBERS], second[NUMBERS], found[NUMBERS];

static uint16_t comparable(uint16_t number, uint16_t infinity) {
    uint16_t magnitude = number & 0x7fff;
    return magnitude > infinity ? 0x7fff : magnitude == 0 ? 0 : number;
}

static uint64_t checksum(char code, uint32_t op) {
    uint64_t sum = 1469598103934665603u;
    const void *pieces[] = {first, second};
    for (uint32_t shift = 1; shift < NUMBERS; shift += 7919) {
        for (uint32_t at = 0; at < NUMBERS; at++) first[at] = (uint16_t)at, second[at] = (uint16_t)(at + shift);
        if (!reduce(op * 256 + (uint32_t)code, found, pieces, 2, sizeof found)) return 0;
        for (uint32_t at = 0; at < NUMBERS; at++)
            sum = (sum ^ comparable(found[at], code == 'e' ? 0x7c00 : 0x7f80)) * 1099511628211u;
    }
    return sum;
}

int main(void) {
    static const uint32_t ops[] = {SUM, PROD, MIN, MAX, AVG};
    for (const char *code = "eE"; *code; code++)
        for (size_t index = 0; index < sizeof ops / sizeof *ops; index++)
            printf("%c %u %016llx\n", *code, (unsigned int)ops[index], (unsigned long long)checksum(*code, ops[index]));
    return 0;
}
