/* A highway LSTM layer: all steps in one call, forward or backward. The rows that go on to another
   step come first; reading backward, rows begin at a step, with zeros as their state. */
#include <string.h>

#include "layer_product.h"

/* The steps of highway_step.c. */
typedef void step_function(long rows, long kept, long size, long forget, float *sums,
                           float *gates, const float *carried, const float *mask,
                           const float *before, float *output, float *memory, float *hidden);
typedef void back_function(long rows, long kept, long size, long forget, const float *gates,
                           const float *carried, const float *mask, const float *before,
                           const float *of_hidden, float *of_output, float *of_memory,
                           float *of_sums, float *of_carried);

/* Numbers of all words are in the order of memory, in which step t has the words `starts[t]` to
   `starts[t + 1]`; `forget` is the index of the gate; `carried` is missing without a highway, `mask`
   without dropout. */
typedef struct {
    long num_steps, size, width, forget, is_backward, threads;
    product_function *product;
    step_function *step;
    back_function *back;
    const int64_t *starts;
    /* Packed for the forward pass or for the backward pass. */
    const uint32_t *recurrent;
    const float *carried, *mask;
    /* Of all words: gates "width"; c and h before the word, h after dropout; outputs. */
    float *gates, *memory, *hidden, *outputs;
} highway_layer;

typedef struct {
    long first, rows;
} words;

/* The words that are read in step `number`; none after the last one. */
static words words_of(const highway_layer *l, long number) {
    words some = {0, 0};
    if (number < l->num_steps) {
        long t = l->is_backward ? l->num_steps - 1 - number : number;
        some.first = l->starts[t];
        some.rows = l->starts[t + 1] - l->starts[t];
    }
    return some;
}

static long smaller(long one, long other) { return one < other ? one : other; }

/* Rows from `row` on begin with the words `some`. */
static void begin(const highway_layer *l, words some, long row) {
    long first = (some.first + row) * l->size, bytes = 4 * (some.rows - row) * l->size;
    memset(l->memory + first, 0, bytes);
    memset(l->hidden + first, 0, bytes);
}

static const float *at(const float *numbers, long first) { return numbers ? numbers + first : 0; }

/* Fills what the layer has of all words. `gates` has the part of the inputs before, the activations
   afterwards. `sums` is scratch, "rows width"; `failed` is set if memory is missing. */
void highway_forward(const highway_layer *l, float *sums, int *failed) {
    begin(l, words_of(l, 0), 0);
    for (long number = 0; number < l->num_steps; ++number) {
        words now = words_of(l, number), next = words_of(l, number + 1);
        long kept = smaller(now.rows, next.rows), size = l->size, first = now.first * size;
        if (number)
            step_product(l->product, 0, l->threads, now.rows, size, l->width, l->hidden + first,
                         l->recurrent, sums, failed);
        else
            memset(sums, 0, 4 * now.rows * l->width);
        l->step(now.rows, kept, size, l->forget, sums, l->gates + now.first * l->width,
                at(l->carried, first), l->mask, l->memory + first, l->outputs + first,
                l->memory + next.first * size, l->hidden + next.first * size);
        begin(l, next, kept);
    }
}

/* From the gradients of all outputs to those of the sums and of what is carried. Scratch: "rows
   size" each, of which `of_memory` has zeros. */
void highway_backward(const highway_layer *l, const float *of_outputs, float *of_output,
                      float *of_hidden, float *of_memory, float *of_sums, float *of_carried,
                      int *failed) {
    for (long number = l->num_steps - 1; number >= 0; --number) {
        words now = words_of(l, number), next = words_of(l, number + 1);
        long kept = smaller(now.rows, next.rows), size = l->size, first = now.first * size;
        float *of_step = of_sums + now.first * l->width;
        memcpy(of_output, of_outputs + first, 4 * now.rows * size);
        l->back(now.rows, kept, size, l->forget, l->gates + now.first * l->width,
                at(l->carried, first), l->mask, l->memory + first, of_hidden, of_output, of_memory, of_step,
                of_carried ? of_carried + first : 0);
        if (number)
            step_product(l->product, 0, l->threads, now.rows, l->width, size, of_step,
                         l->recurrent, of_hidden, failed);
    }
}
