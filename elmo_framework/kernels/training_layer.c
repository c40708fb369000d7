/* An LSTM layer in training: all steps in one call, forward or backward. With small weights, a call
   for each product and each step takes longer than the arithmetic. */
#include <math.h>

#include "layer_product.h"

/* The steps of lstm_step.c, which has other options. */
typedef void step_function(long rows, long size, float limit, int keep, float *gates,
                           const float *inputs, const float *before, float *after, float *output);
typedef void back_function(long rows, long size, float limit, const float *gates,
                           const float *before, const float *after, const float *of_output,
                           float *of_memory, float *of_sums);

/* Numbers of all words are in the order of the steps: `sizes` has the rows of each step, which never
   grow. `projection` is missing if h is not projected; then `cell_outputs` is `outputs`. */
typedef struct {
    long num_steps, cell, hidden, precision, threads;
    float cell_limit, hidden_limit;
    product_function *product;
    step_function *step;
    back_function *back;
    const int64_t *sizes;
    /* Packed for the forward pass or for the backward pass. */
    const uint32_t *recurrent, *projection;
    /* "rows hidden" and "rows cell", before the first step. */
    const float *start_hidden, *start_memory;
    /* Of all words: activations "4*cell", c "cell", output of the cell "cell", h "hidden". */
    float *gates, *memory, *cell_outputs, *outputs;
} training_layer;

static void multiply(const training_layer *l, long rows, long inputs, long outputs,
                     const float *from, const uint32_t *blocks, float *out, int *failed) {
    step_product(l->product, l->precision, l->threads, rows, inputs, outputs, from, blocks, out,
                 failed);
}

static float clipped(float x, float limit) {
    float low = x > limit ? limit : x;
    return low < -limit ? -limit : low;
}

/* Fills what the layer has of all words. `inputs`, "words 4*cell", has the input half of the gates;
   sets `failed` if memory is missing. */
void train_forward(const training_layer *l, const float *inputs, int *failed) {
    const float *hidden = l->start_hidden, *memory = l->start_memory;
    long first = 0;
    for (long t = 0; t < l->num_steps; ++t) {
        long rows = l->sizes[t];
        float *gates = l->gates + first * 4 * l->cell, *after = l->memory + first * l->cell;
        float *cell_output = l->cell_outputs + first * l->cell;
        float *output = l->outputs + first * l->hidden;
        multiply(l, rows, l->hidden, 4 * l->cell, hidden, l->recurrent, gates, failed);
        l->step(rows, l->cell, l->cell_limit, 1, gates, inputs + first * 4 * l->cell, memory, after,
                cell_output);
        if (l->projection) {
            multiply(l, rows, l->cell, l->hidden, cell_output, l->projection, output, failed);
            for (long k = 0; k < rows * l->hidden; ++k)
                output[k] = clipped(output[k], l->hidden_limit);
        }
        hidden = output;
        memory = after;
        first += rows;
    }
}

/* From the gradients of all outputs and of the last states to those of the sums of the gates and of
   the projections, "words 4*cell" and "words hidden"; the gradients of the states before the first
   step take the place of `of_hidden` and `of_memory`. `scratch` is "rows cell". */
void train_backward(const training_layer *l, const float *of_outputs, float *of_hidden,
                    float *of_memory, float *of_sums, float *of_projected, float *scratch,
                    int *failed) {
    long first = 0;
    for (long t = 0; t < l->num_steps; ++t)
        first += l->sizes[t];
    for (long t = l->num_steps - 1; t >= 0; --t) {
        long rows = l->sizes[t], cell = l->cell, hidden = l->hidden;
        first -= rows;
        const float *before =
            t ? l->memory + (first - l->sizes[t - 1]) * cell : l->start_memory;
        const float *output = l->outputs + first * hidden, *of_output = of_outputs + first * hidden;
        float *projected = of_projected + first * hidden, *sums = of_sums + first * 4 * cell;
        for (long k = 0; k < rows * hidden; ++k) {
            float sum = of_output[k] + of_hidden[k];
            projected[k] = l->projection && fabsf(output[k]) >= l->hidden_limit ? 0.0f : sum;
        }
        if (l->projection)
            multiply(l, rows, hidden, cell, projected, l->projection, scratch, failed);
        l->back(rows, cell, l->cell_limit, l->gates + first * 4 * cell, before,
                l->memory + first * cell, l->projection ? scratch : projected, of_memory, sums);
        multiply(l, rows, 4 * cell, hidden, sums, l->recurrent, of_hidden, failed);
    }
}
