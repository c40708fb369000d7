/* An LSTM layer with projection that reads one row, all steps in one call. With the small weights of
   a fast model, a call for each product and step takes longer than the arithmetic. */
#include <string.h>

#define LANES 16
/* Vectors of outputs that are summed beside each other: one sum would wait for its last addition. */
#define VECTORS 4
#define GROUP (LANES * VECTORS)

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));

/* `lstm_step` of lstm_step.c, which is compiled with other options. */
typedef void step_function(long rows, long size, float limit, int keep, float *gates,
                           const float *inputs, const float *before, float *after, float *output);

/* The product of one row with a weight, with the bits that oneDNN gives a row among others: each
   output is one sum, in the order of the inputs, in chunks of a length that is oneDNN's own.
   `packed` is "outputs/GROUP inputs GROUP", read from its end if `is_backward`. */
void packed_product(long outputs, long inputs, long chunk, int is_backward,
                    const float *restrict packed, const float *restrict row, float *restrict out) {
#pragma omp parallel for schedule(static) if (outputs * inputs > 65536)
    for (long i = 0; i < outputs; i += GROUP) {
        long n = is_backward ? outputs - GROUP - i : i;
        lanes total[VECTORS] = {0};
        for (long first = 0; first < inputs; first += chunk) {
            lanes sum[VECTORS] = {0};
            long end = first + chunk < inputs ? first + chunk : inputs;
            for (long k = first; k < end; ++k) {
                const lanes *weight = (const lanes *)(packed + n * inputs + k * GROUP);
#pragma GCC unroll 4
                for (int v = 0; v < VECTORS; ++v)
                    sum[v] += weight[v] * row[k];
            }
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; ++v)
                total[v] += sum[v];
        }
        memcpy(out + n, total, sizeof total);
    }
}

/* `recurrent` is "4*cell hidden" and `projection` "hidden cell", both packed; the latter may be
   NULL if hidden == cell. `inputs` is "steps 4*cell". `memory` is "2 cell": the first half is the
   state before; step after step the halves take turns. `gates` and `cell_output` are scratch. */
void lstm_row(long steps, long cell, long hidden, long recurrent_chunk, long projection_chunk,
              float cell_limit, float hidden_limit, step_function *step, const float *recurrent,
              const float *projection, const float *inputs, const float *start, float *gates,
              float *memory, float *cell_output, float *outputs) {
    const float *before = start;
    for (long t = 0; t < steps; ++t) {
        /* Weights a little larger than the cache are read to and fro: their last part is still in
           the cache at the next step. */
        int is_backward = t & 1;
        float *output = outputs + t * hidden;
        packed_product(4 * cell, hidden, recurrent_chunk, is_backward, recurrent, before, gates);
        step(1, cell, cell_limit, 0, gates, inputs + t * 4 * cell, memory + (t & 1) * cell,
             memory + (~t & 1) * cell, projection ? cell_output : output);
        if (projection) {
            packed_product(hidden, cell, projection_chunk, is_backward, projection, cell_output,
                           output);
            for (long k = 0; k < hidden; ++k) {
                float low = output[k] > hidden_limit ? hidden_limit : output[k];
                output[k] = low < -hidden_limit ? -hidden_limit : low;
            }
        }
        before = output;
    }
}
