/* A gated linear recurrence between its two products, in one pass over memory.

   gates: "steps rows 3*size", the sums of [forget, candidate, output]; is_word, false at padding:
   "steps rows". Each row is read on its own, from its first step to its last or back. */
#include "activations.h"

/* Channels of a row that one thread reads. */
#define CHANNELS 512

/* The sigmoid in silu(o) = o s: `sigmoid_of` never falls to 0, and a huge sum times it would not.
   Bits are compared, from -104 to minus infinity, as in `sigmoid_of`. */
static inline float silu_gate_of(float o) {
    union {
        float number;
        uint32_t bits;
    } sum = {o};
    return sum.bits > 0xc2d00000u && sum.bits <= 0xff800000u ? 0.0f : sigmoid_of(o);
}

static inline long end_of(long first, long size) {
    return first + CHANNELS < size ? first + CHANNELS : size;
}

/* `before` and `after` may be the same. */
static inline void step(long first, long end, long size, int is_word, const float *restrict g,
                        const float *before, float *after, float *restrict output) {
#pragma omp simd
    for (long k = first; k < end; ++k) {
        float o = g[2 * size + k], added = g[size + k];
        float c = is_word ? added + sigmoid_of(g[k]) * (before[k] - added) : before[k];
        after[k] = c;
        output[k] = o * silu_gate_of(o) * c;
    }
}

/* `states` is filled with the memory after each step, "steps rows size", if `keep`; otherwise with
   that after the last one, "rows size". `outputs`, "steps rows size", with silu(o) c. */
void gated_scan(long steps, long rows, long size, int keep, const float *restrict gates,
                const uint8_t *restrict is_word, const float *restrict start, float *states,
                float *restrict outputs) {
    long stride = keep ? rows * size : 0;
#pragma omp parallel for schedule(static) collapse(2) if (steps * rows * size > 16384)
    for (long row = 0; row < rows; ++row)
        for (long first = 0; first < size; first += CHANNELS) {
            const float *before = start + row * size;
            for (long t = 0; t < steps; ++t) {
                long at = t * rows + row;
                float *after = states + t * stride + row * size;
                step(first, end_of(first, size), size, is_word[at], gates + 3 * size * at, before,
                     after, outputs + size * at);
                before = after;
            }
        }
}

static inline void step_back(long first, long end, long size, int is_word,
                             const float *restrict g, const float *restrict before,
                             const float *restrict after, const float *restrict of_output,
                             float *restrict of_state, float *restrict of_g) {
#pragma omp simd
    for (long k = first; k < end; ++k) {
        float o = g[2 * size + k], s = silu_gate_of(o);
        float f = is_word ? sigmoid_of(g[k]) : 1.0f;
        float d = of_state[k] + of_output[k] * o * s;
        of_g[k] = is_word ? d * (before[k] - g[size + k]) * f * (1.0f - f) : 0.0f;
        of_g[size + k] = d * (1.0f - f);
        of_g[2 * size + k] = of_output[k] * after[k] * s * (1.0f + o * (1.0f - s));
        of_state[k] = d * f;
    }
}

/* From the gradients of the outputs and of the last memory, in `of_state`, to those of the gates
   and of the first memory, which takes the place of that of the last. */
void gated_scan_backward(long steps, long rows, long size, const float *restrict gates,
                         const uint8_t *restrict is_word, const float *restrict start,
                         const float *restrict states, const float *restrict of_outputs,
                         float *restrict of_state, float *restrict of_gates) {
#pragma omp parallel for schedule(static) collapse(2) if (steps * rows * size > 16384)
    for (long row = 0; row < rows; ++row)
        for (long first = 0; first < size; first += CHANNELS)
            for (long t = steps - 1; t >= 0; --t) {
                long at = t * rows + row;
                const float *before = t ? states + size * (at - rows) : start + size * row;
                step_back(first, end_of(first, size), size, is_word[at], gates + 3 * size * at,
                          before, states + size * at, of_outputs + size * at,
                          of_state + size * row, of_gates + 3 * size * at);
            }
}
