/* The part of a highway LSTM's step that is no product, in one pass over memory.

   Each row of sums and gates holds [input, candidate, forget, output], each `size` wide, and
   [transform] where there is a highway, that is, where `carried` is given. `forget` is 2, or 1 in
   PyTorch's order, in which the candidate follows. */
#include "activations.h"

/* Leaves the memory afterwards in the first part of `sums`. */
static inline __attribute__((always_inline)) void step_of_row(
    long size, long forget, const int highway, float *restrict sums, float *restrict g,
    const float *restrict carried, const float *restrict before, float *restrict output) {
    long at_j = (3 - forget) * size, at_f = forget * size;
#pragma omp simd
    for (long k = 0; k < size; ++k) {
        float i = sigmoid_of(g[k] + sums[k]);
        float j = tanh_of(g[k + at_j] + sums[k + at_j]);
        float f = sigmoid_of(g[k + at_f] + sums[k + at_f]);
        float o = sigmoid_of(g[k + 3 * size] + sums[k + 3 * size]);
        float c = f * before[k] + i * j;
        float h = o * tanh_of(c);
        g[k] = i;
        g[k + at_j] = j;
        g[k + at_f] = f;
        g[k + 3 * size] = o;
        if (highway) {
            float t = sigmoid_of(g[k + 4 * size] + sums[k + 4 * size]);
            g[k + 4 * size] = t;
            h = carried[k] + t * (h - carried[k]);
        }
        sums[k] = c;
        output[k] = h;
    }
}

/* `gates` holds the rest of the sums; afterwards the activations. The first `kept` rows go on:
   `memory` is filled with what they remember, `hidden` with their output times `mask`. */
void highway_step(long rows, long kept, long size, long forget, float *restrict sums, float *restrict gates,
                  const float *restrict carried, const float *restrict mask,
                  const float *restrict before, float *restrict output, float *restrict memory,
                  float *restrict hidden) {
    long width = (carried ? 5 : 4) * size;
#pragma omp parallel for schedule(static) if (rows * size > 16384)
    for (long row = 0; row < rows; ++row) {
        long at = row * size;
        float *s = sums + row * width, *g = gates + row * width;
        if (carried)
            step_of_row(size, forget, 1, s, g, carried + at, before + at, output + at);
        else
            step_of_row(size, forget, 0, s, g, carried, before + at, output + at);
        if (row < kept)
            for (long k = 0; k < size; ++k) {
                memory[at + k] = s[k];
                hidden[at + k] = mask ? output[at + k] * mask[at + k] : output[at + k];
            }
    }
}

static inline __attribute__((always_inline)) void step_back_of_row(
    long size, long forget, const int highway, const float *restrict g,
    const float *restrict carried, const float *restrict before, const float *restrict of_output,
    float *restrict of_memory, float *restrict of_sums, float *restrict of_carried) {
    long at_j = (3 - forget) * size, at_f = forget * size;
#pragma omp simd
    for (long k = 0; k < size; ++k) {
        float i = g[k], j = g[k + at_j], f = g[k + at_f], o = g[k + 3 * size];
        float outer = tanh_of(f * before[k] + i * j), of_cell = of_output[k];
        if (highway) {
            float t = g[k + 4 * size];
            of_cell *= t;
            of_carried[k] = of_output[k] - of_cell;
            of_sums[k + 4 * size] = of_cell * (1.0f - t) * (o * outer - carried[k]);
        }
        float d = of_memory[k] + of_cell * o * (1.0f - outer * outer);
        of_sums[k] = d * j * i * (1.0f - i);
        of_sums[k + at_j] = d * i * (1.0f - j * j);
        of_sums[k + at_f] = d * before[k] * f * (1.0f - f);
        of_sums[k + 3 * size] = of_cell * outer * o * (1.0f - o);
        of_memory[k] = d * f;
    }
}

/* From the gradients of `output` and, for the first `kept` rows, `hidden`, to those of the sums
   and of what is carried; that of the memory before takes the place of that of the memory after,
   and that of the output is completed in place. */
void highway_step_backward(long rows, long kept, long size, long forget,
                           const float *restrict gates,
                           const float *restrict carried, const float *restrict mask,
                           const float *restrict before, const float *restrict of_hidden,
                           float *restrict of_output, float *restrict of_memory,
                           float *restrict of_sums, float *restrict of_carried) {
    long width = (carried ? 5 : 4) * size;
#pragma omp parallel for schedule(static) if (rows * size > 16384)
    for (long row = 0; row < rows; ++row) {
        long at = row * size;
        const float *g = gates + row * width, *c0 = before + at;
        float *out = of_output + at, *dc = of_memory + at, *s = of_sums + row * width;
        if (row < kept)
            for (long k = 0; k < size; ++k)
                out[k] += mask ? of_hidden[at + k] * mask[at + k] : of_hidden[at + k];
        if (carried)
            step_back_of_row(size, forget, 1, g, carried + at, c0, out, dc, s, of_carried + at);
        else
            step_back_of_row(size, forget, 0, g, carried, c0, out, dc, s, of_carried);
    }
}
