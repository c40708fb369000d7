/* The part of an LSTM's step that is no product, in one pass over memory.

   gates, one row after the other: [input, candidate, forget, output], each `size` wide, the
   recurrent part of their sums already in; `inputs` holds the rest of the sums. */
#include "activations.h"

/* Whether |x| is at least `limit`; bits are compared, as in `sigmoid_of`, for what is no number. */
static inline int reaches(float x, float limit) {
    union {
        float number;
        uint32_t bits;
    } size = {fabsf(x)}, least = {limit};
    return size.bits >= least.bits && size.bits <= 0x7f800000;
}

static inline float clipped(float x, float limit) {
    return reaches(x, limit) ? copysignf(limit, x) : x;
}

static inline __attribute__((always_inline)) void step_of_row(
    long size, float limit, const int keep, float *restrict g, const float *restrict x,
    const float *restrict c0, float *restrict c1, float *restrict out) {
#pragma omp simd
    for (long k = 0; k < size; ++k) {
        float i = sigmoid_of(g[k] + x[k]);
        float j = tanh_of(g[k + size] + x[k + size]);
        float f = sigmoid_of(g[k + 2 * size] + x[k + 2 * size]);
        float o = sigmoid_of(g[k + 3 * size] + x[k + 3 * size]);
        float c = clipped(f * c0[k] + i * j, limit);
        c1[k] = c;
        out[k] = o * tanh_of(c);
        if (keep) {
            g[k] = i;
            g[k + size] = j;
            g[k + 2 * size] = f;
            g[k + 3 * size] = o;
        }
    }
}

/* Leaves the activations in `gates` if `keep`. */
void lstm_step(long rows, long size, float limit, int keep, float *restrict gates,
               const float *restrict inputs, const float *restrict before,
               float *restrict after, float *restrict output) {
#pragma omp parallel for schedule(static) if (rows * size > 16384)
    for (long row = 0; row < rows; ++row) {
        long at = row * size;
        if (keep)
            step_of_row(size, limit, 1, gates + 4 * at, inputs + 4 * at, before + at, after + at,
                        output + at);
        else
            step_of_row(size, limit, 0, gates + 4 * at, inputs + 4 * at, before + at, after + at,
                        output + at);
    }
}

/* From the gradients of output and memory to those of the sums, and of the memory before in place
   of that of the memory after. */
void lstm_step_backward(long rows, long size, float limit, const float *restrict gates,
                        const float *restrict before, const float *restrict after,
                        const float *restrict of_output, float *restrict of_memory,
                        float *restrict of_sums) {
#pragma omp parallel for schedule(static) if (rows * size > 16384)
    for (long row = 0; row < rows; ++row) {
        const float *g = gates + row * 4 * size, *c0 = before + row * size;
        const float *c1 = after + row * size, *dout = of_output + row * size;
        float *dc = of_memory + row * size, *sums = of_sums + row * 4 * size;
#pragma omp simd
        for (long k = 0; k < size; ++k) {
            float i = g[k], j = g[k + size], f = g[k + 2 * size], o = g[k + 3 * size];
            float t = tanh_of(c1[k]);
            float d = dc[k] + dout[k] * o * (1.0f - t * t);
            d = reaches(c1[k], limit) ? 0.0f : d;
            sums[k] = d * j * i * (1.0f - i);
            sums[k + size] = d * i * (1.0f - j * j);
            sums[k + 2 * size] = d * c0[k] * f * (1.0f - f);
            sums[k + 3 * size] = dout[k] * t * o * (1.0f - o);
            dc[k] = d * f;
        }
    }
}
