/* Frozen LSTM layers with projection, all layers and steps of some rows in one call. With the small
   weights of a fast model, a call for each product and step takes longer than the arithmetic. Threads
   share no product: each one reads some of the rows in one direction, and waits for no other. */
#include <stdlib.h>

#include "packed.h"

/* Numbers of words whose input half of the gates is computed together. */
#define WORDS_AT_ONCE 32

/* `lstm_step` of lstm_step.c, which is compiled with other options. */
typedef void step_function(long rows, long size, float limit, int keep, float *gates,
                           const float *inputs, const float *before, float *after, float *output);

/* Weights of a layer in one direction; `projection` has no blocks if h is not projected. `hidden` and
   `memory` are "all_rows hidden" and "all_rows cell", the state before and after. */
typedef struct {
    packed_weight input, recurrent, projection;
    float *hidden, *memory;
} lstm_layer;

typedef struct {
    long num_layers, num_directions, num_rows, num_tokens, dim;
    int has_skip;
    float cell_limit, hidden_limit;
    step_function *step;
    /* "directions layers". The second direction reads each row from its end. */
    const lstm_layer *layers;
    /* Of all rows, longest first: the place of a row, and its number of words. */
    const int64_t *order, *lengths;
    const float *words; /* "rows tokens dim" */
    float *outputs;     /* "layers rows tokens directions*hidden"; places of padding are not written */
} lstm_stack;

typedef struct {
    float *inputs, *gates, *hidden, *memory, *cell_output, *scales;
    char *narrow;
} scratch;

static long larger(long a, long b) { return a > b ? a : b; }

static int allocate(scratch *s, const lstm_layer *layer, long rows, long dim) {
    long cell = layer->input.outputs / 4, hidden = layer->recurrent.inputs;
    long words = larger(rows, WORDS_AT_ONCE);
    long widest = larger(larger(dim, hidden), cell);
    long sizes[6] = {words * 4 * cell, rows * 4 * cell, rows * hidden,
                     2 * rows * cell,  rows * cell,     words};
    float **parts[6] = {&s->inputs, &s->gates, &s->hidden, &s->memory, &s->cell_output, &s->scales};
    long total = words * widest;
    for (int i = 0; i < 6; ++i)
        total += sizes[i] + LANES;
    float *next = NULL;
    if (posix_memalign((void **)&next, 64, 4 * total))
        return 0;
    s->inputs = next; /* what is freed */
    for (int i = 0; i < 6; ++i) {
        *parts[i] = next;
        next += (sizes[i] + LANES - 1) / LANES * LANES;
    }
    s->narrow = (char *)next;
    return 1;
}

/* Where the output of a layer for step t of a row is. */
static float *output_of(const lstm_stack *s, long layer, int direction, long row, long length,
                        long t, long hidden) {
    long token = direction ? length - 1 - t : t;
    long word = (layer * s->num_rows + row) * s->num_tokens + token;
    return s->outputs + (word * s->num_directions + direction) * hidden;
}

/* Rounds the inputs of steps `first` to `end`, step by step; returns their number. */
static long rounded_inputs(const lstm_stack *s, long layer, int direction, const int64_t *order,
                           const int64_t *lengths, long rows, long first, long end,
                           const packed_weight *input, long hidden, const scratch *buffers) {
    long number = 0;
    for (long t = first; t < end; ++t)
        for (long r = 0; r < rows && lengths[r] > t; ++r, ++number) {
            long token = direction ? lengths[r] - 1 - t : t;
            const float *word =
                layer ? output_of(s, layer - 1, direction, order[r], lengths[r], t, hidden)
                      : s->words + (order[r] * s->num_tokens + token) * s->dim;
            buffers->scales[number] =
                rounded_row(input->precision, input->inputs, word,
                            buffers->narrow + number * row_bytes(input->precision, input->inputs));
        }
    return number;
}

static void product_of_state(const packed_weight *weight, long rows, const float *row,
                             int is_backward, const scratch *buffers, float *out) {
    for (long r = 0; r < rows; ++r)
        buffers->scales[r] =
            rounded_row(weight->precision, weight->inputs, row + r * weight->inputs,
                        buffers->narrow + r * row_bytes(weight->precision, weight->inputs));
    packed_product(weight, rows, buffers->narrow, buffers->scales, is_backward, out);
}

static float clipped(float x, float limit) {
    float low = x > limit ? limit : x;
    return low < -limit ? -limit : low;
}

/* One step of the first `rows` rows, from half `t & 1` of the memory to the other. */
static void read_step(const lstm_stack *s, const lstm_layer *l, long t, long rows, long all_rows,
                      const float *inputs, const scratch *b) {
    long cell = l->input.outputs / 4, hidden = l->recurrent.inputs;
    int has_projection = l->projection.blocks != NULL;
    /* Weights a little larger than the cache are read to and fro. */
    int is_backward = t & 1;
    product_of_state(&l->recurrent, rows, b->hidden, is_backward, b, b->gates);
    s->step(rows, cell, s->cell_limit, 0, b->gates, inputs, b->memory + (t & 1) * all_rows * cell,
            b->memory + (~t & 1) * all_rows * cell, has_projection ? b->cell_output : b->hidden);
    if (!has_projection)
        return;
    product_of_state(&l->projection, rows, b->cell_output, is_backward, b, b->hidden);
    for (long k = 0; k < rows * hidden; ++k)
        b->hidden[k] = clipped(b->hidden[k], s->hidden_limit);
}

/* Reads some rows, longest first, with one layer in one direction. */
static void read_layer(const lstm_stack *s, long layer, int direction, const int64_t *order,
                       const int64_t *lengths, long all_rows, const scratch *b) {
    const lstm_layer *l = s->layers + direction * s->num_layers + layer;
    long cell = l->input.outputs / 4, hidden = l->recurrent.inputs, rows = all_rows;
    long steps = larger(1, WORDS_AT_ONCE / all_rows);
    const float *inputs = NULL;
    for (long r = 0; r < all_rows; ++r) {
        memcpy(b->hidden + r * hidden, l->hidden + order[r] * hidden, 4 * hidden);
        memcpy(b->memory + r * cell, l->memory + order[r] * cell, 4 * cell);
    }
    for (long t = 0;; ++t) {
        const float *memory = b->memory + (t & 1) * all_rows * cell;
        for (; rows && lengths[rows - 1] <= t; --rows) {
            long place = order[rows - 1];
            memcpy(l->hidden + place * hidden, b->hidden + (rows - 1) * hidden, 4 * hidden);
            memcpy(l->memory + place * cell, memory + (rows - 1) * cell, 4 * cell);
        }
        if (!rows)
            return;
        if (t % steps == 0) {
            long number = rounded_inputs(s, layer, direction, order, lengths, rows, t, t + steps,
                                         &l->input, hidden, b);
            packed_product(&l->input, number, b->narrow, b->scales, 0, b->inputs);
            inputs = b->inputs;
        }
        read_step(s, l, t, rows, all_rows, inputs, b);
        inputs += rows * 4 * cell;
        for (long r = 0; r < rows; ++r) {
            float *out = output_of(s, layer, direction, order[r], lengths[r], t, hidden);
            const float *h = b->hidden + r * hidden;
            memcpy(out, h, 4 * hidden);
            if (layer && s->has_skip) {
                const float *before =
                    output_of(s, layer - 1, direction, order[r], lengths[r], t, hidden);
                for (long k = 0; k < hidden; ++k)
                    out[k] += before[k];
            }
        }
    }
}

/* A task reads up to `rows_at_once` rows in one direction. Sets `failed` if memory is missing. */
void read_stack(const lstm_stack *s, long rows_at_once, int *failed) {
    long blocks = (s->num_rows + rows_at_once - 1) / rows_at_once;
#pragma omp parallel for schedule(dynamic) if (blocks * s->num_directions > 1)
    for (long task = 0; task < blocks * s->num_directions; ++task) {
        int direction = (int)(task % s->num_directions);
        long first = task / s->num_directions * rows_at_once;
        long rows = s->num_rows - first < rows_at_once ? s->num_rows - first : rows_at_once;
        scratch buffers;
        if (!allocate(&buffers, s->layers + direction * s->num_layers, rows, s->dim)) {
            *failed = 1;
            continue;
        }
        void *memory = buffers.inputs;
        for (long layer = 0; layer < s->num_layers; ++layer)
            read_layer(s, layer, direction, s->order + first, s->lengths + first, rows, &buffers);
        free(memory);
    }
}
