/* Large products of a training step: both operands change at every update, and one of them may be
   transposed. A block has GROUP outputs, in the order in which a product reads it, as in packed.h;
   numbers are float32, or pairs of bfloat16 in 32 bits, whose sums are float32. */
#include <stdlib.h>

#include "packed.h"

/* Rows that are multiplied at once. */
#ifdef __AVX512F__
#define ROWS_AT_ONCE 6
#else
#define ROWS_AT_ONCE 1
#endif

/* Numbers of 32 bits of a row. */
static long depth_of(long precision, long inputs) {
    return precision == FLOAT32 ? inputs : (inputs + 1) / 2;
}

static uint32_t both(float low, float high) {
    return bfloat16_of(low) | (uint32_t)bfloat16_of(high) << 16;
}

/* Inputs `first` to `end`, in 32 bits, of GROUP outputs that are next to each other in memory;
   those from `width` on are zeros. */
static void pack_columns(long precision, long inputs, long width, const float *matrix, long stride,
                         long first, long end, uint32_t *restrict out) {
    for (long k = first; k < end; ++k, out += GROUP) {
        const float *low = matrix + k * stride, *high;
        if (precision == FLOAT32) {
            memcpy(out, low, 4 * width);
        } else {
            low = matrix + 2 * k * stride;
            high = low + stride;
            if (2 * k + 1 < inputs)
                for (long n = 0; n < width; ++n)
                    out[n] = both(low[n], high[n]);
            else
                for (long n = 0; n < width; ++n)
                    out[n] = both(low[n], 0.0f);
        }
        for (long n = width; n < GROUP; ++n)
            out[n] = 0;
    }
}

/* Rounds `number` floats, the last one of a pair with zero. */
static void round_pairs(long number, const float *restrict from, uint16_t *restrict narrow) {
    for (long k = 0; k < number; ++k)
        narrow[k] = bfloat16_of(from[k]);
    if (number % 2)
        narrow[number] = 0;
}

/* All inputs of GROUP outputs, each of which is a row in memory. */
static void pack_rows(long precision, long inputs, long width, const float *matrix, long stride,
                      uint32_t *restrict out) {
    long step = precision == FLOAT32 ? LANES : 2 * LANES;
    for (long first = 0; first < inputs; first += step, out += LANES * GROUP) {
        long number = inputs - first < step ? inputs - first : step;
        long depth = depth_of(precision, number);
        for (long n = 0; n < GROUP; ++n) {
            uint32_t some[LANES] = {0};
            const float *row = matrix + n * stride + first;
            if (n < width && precision == FLOAT32)
                memcpy(some, row, 4 * number);
            else if (n < width)
                round_pairs(number, row, (uint16_t *)some);
            for (long k = 0; k < depth; ++k)
                out[k * GROUP + n] = some[k];
        }
    }
}

/* Packs a matrix "outputs inputs", of which one stride is 1, in blocks "outputs/GROUP depth GROUP". */
void pack_matrix(long precision, long outputs, long inputs, const float *matrix, long output_stride,
                 long input_stride, long threads, uint32_t *blocks) {
    long depth = depth_of(precision, inputs);
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (long n = 0; n < outputs; n += GROUP) {
        long width = outputs - n < GROUP ? outputs - n : GROUP;
        uint32_t *out = blocks + n * depth;
        if (input_stride == 1)
            pack_rows(precision, inputs, width, matrix + n * output_stride, output_stride, out);
        else
            pack_columns(precision, inputs, width, matrix + n, input_stride, 0, depth, out);
    }
}

/* The rows that are multiplied: as they are in memory, or packed in groups of GROUP. */
typedef struct {
    long precision, rows, inputs, outputs;
    const float *matrix;
    long row_stride, input_stride;
    const uint32_t *blocks;
    const float *bias;
    float *out;
} product;

static int is_direct(const product *p) { return p->precision == FLOAT32 && p->input_stride == 1; }

/* Packs inputs `first` to `end` of the rows from `row` on; of a row, or of GROUP rows, one after the
   other, as they are in memory. */
static void pack_group(const product *p, long row, long first, long end, uint32_t *restrict out) {
    long width = p->rows - row < GROUP ? p->rows - row : GROUP;
    if (p->input_stride != 1) {
        pack_columns(p->precision, p->inputs, width, p->matrix + row, p->input_stride, first, end,
                     out);
        return;
    }
    long number = (2 * end < p->inputs ? 2 * end : p->inputs) - 2 * first;
    for (long r = 0; r < width; ++r, out += end - first)
        round_pairs(number, p->matrix + (row + r) * p->row_stride + 2 * first, (uint16_t *)out);
}

/* The sums of some rows and of the first `vectors` of a block, which are in registers. */
static inline __attribute__((always_inline)) void sums_of(
    const int rows, const int vectors, const int is_narrow, long depth,
    const uint32_t *restrict row, long row_step, long step, const uint32_t *restrict block,
    lanes total[ROWS_AT_ONCE][MOST_VECTORS]) {
    lanes sum[ROWS_AT_ONCE][MOST_VECTORS] = {0};
    for (long k = 0; k < depth; ++k) {
        const uint32_t *b = block + k * GROUP;
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) {
            uint32_t bits = row[r * row_step + k * step];
            if (is_narrow) {
                add_pairs(MOST_VECTORS, sum[r], (const words32 *)b, bits);
                continue;
            }
            float number;
            memcpy(&number, &bits, 4);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v)
                sum[r][v] += ((const lanes *)b)[v] * number;
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v)
            total[r][v] = sum[r][v];
}

#define CASE(number)                                                                        \
    case number:                                                                            \
        if (p->precision != FLOAT32)                                                        \
            sums_of(number, MOST_VECTORS, 1, depth, row, row_step, step, block, sum);       \
        else if (width > GROUP - LANES)                                                     \
            sums_of(number, MOST_VECTORS, 0, depth, row, row_step, step, block, sum);       \
        else if (width > GROUP - 2 * LANES)                                                 \
            sums_of(number, MOST_VECTORS - 1, 0, depth, row, row_step, step, block, sum);   \
        else                                                                                \
            sums_of(number, MOST_VECTORS - 2, 0, depth, row, row_step, step, block, sum);   \
        break;

/* Adds the sums over inputs `first` to `end` to GROUP outputs of some rows. */
static void multiply(const product *p, long at, long rows, const uint32_t *from, long row_step,
                     long step, long n, long first, long end) {
    long all = depth_of(p->precision, p->inputs), depth = end - first;
    const uint32_t *block = p->blocks + n * all + first * GROUP;
    long width = p->outputs - n < GROUP ? p->outputs - n : GROUP;
    for (long r = 0; r < rows; r += ROWS_AT_ONCE) {
        lanes sum[ROWS_AT_ONCE][MOST_VECTORS];
        const uint32_t *row = from + r * row_step;
        int number = rows - r < ROWS_AT_ONCE ? (int)(rows - r) : ROWS_AT_ONCE;
        switch (number) {
#if ROWS_AT_ONCE > 1
            CASE(6)
            CASE(5)
            CASE(4)
            CASE(3)
            CASE(2)
#endif
            CASE(1)
        }
        for (int i = 0; i < number; ++i) {
            float *out = p->out + (at + r + i) * p->outputs + n;
            float *of_row = (float *)sum[i];
            if (first)
                for (long k = 0; k < width; ++k)
                    of_row[k] += out[k];
            if (p->bias && end == all)
                for (long k = 0; k < width; ++k)
                    of_row[k] += p->bias[n + k];
            memcpy(out, of_row, 4 * width);
        }
    }
}

/* The place of the first of the rows that were packed, and the steps between rows and inputs. */
static void multiply_group(const product *p, long row, const uint32_t *packed, long length, long n,
                           long first, long end) {
    long rows = p->rows - row < GROUP ? p->rows - row : GROUP;
    if (is_direct(p))
        multiply(p, row, rows, (const uint32_t *)p->matrix + row * p->row_stride + first,
                 p->row_stride, 1, n, first, end);
    else if (p->input_stride == 1)
        multiply(p, row, rows, packed, length, 1, n, first, end);
    else
        multiply(p, row, rows, packed, 1, GROUP, n, first, end);
}

/* Each thread computes some of the outputs of all rows, which are packed before. */
static void split_outputs(const product *p, long chunk, long threads, uint32_t *scratch) {
    long depth = depth_of(p->precision, p->inputs);
#pragma omp parallel num_threads((int)threads)
    {
        if (!is_direct(p)) {
#pragma omp for schedule(static)
            for (long row = 0; row < p->rows; row += GROUP)
                pack_group(p, row, 0, depth, scratch + row * depth);
        }
#pragma omp for schedule(static)
        for (long n = 0; n < p->outputs; n += GROUP)
            for (long first = 0; first < depth; first += chunk) {
                long end = first + chunk < depth ? first + chunk : depth;
                long skipped = p->input_stride == 1 ? first : first * GROUP;
                for (long row = 0; row < p->rows; row += GROUP)
                    multiply_group(p, row, scratch + row * depth + skipped, depth, n, first, end);
            }
    }
}

/* Each thread computes all outputs of some rows, of which it packs a part at a time. */
static void split_rows(const product *p, long chunk, long threads, uint32_t *scratch) {
    long depth = depth_of(p->precision, p->inputs), groups = (p->rows + GROUP - 1) / GROUP;
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
    for (long thread = 0; thread < threads; ++thread) {
        uint32_t *packed = scratch + thread * chunk * GROUP;
        long start = groups * thread / threads, stop = groups * (thread + 1) / threads;
        for (long first = 0; first < depth; first += chunk) {
            long end = first + chunk < depth ? first + chunk : depth;
            for (long row = start * GROUP; row < stop * GROUP && row < p->rows; row += GROUP) {
                if (!is_direct(p))
                    pack_group(p, row, first, end, packed);
                for (long n = 0; n < p->outputs; n += GROUP)
                    multiply_group(p, row, packed, end - first, n, first, end);
            }
        }
    }
}

/* The numbers of 32 bits that `blocked_product` needs as scratch. */
static long scratch_size(const product *p, long chunk, long threads) {
    if (is_direct(p))
        return 0;
    if (p->outputs >= p->rows)
        return (p->rows + GROUP - 1) / GROUP * GROUP * depth_of(p->precision, p->inputs);
    return chunk * GROUP * threads;
}

/* Writes "rows outputs"; sets `failed` if memory is missing. `matrix` is "rows inputs", of which one
   stride is 1. */
void blocked_product(long precision, long rows, long inputs, long outputs, const float *matrix,
                     long row_stride, long input_stride, const uint32_t *blocks, const float *bias,
                     long threads, float *out, int *failed) {
    product p = {precision,    rows,   inputs, outputs, matrix, row_stride,
                 input_stride, blocks, bias,   out};
    long chunk = chunk_of(depth_of(precision, inputs));
    void *scratch = NULL;
    if (posix_memalign(&scratch, 64, 4 * (scratch_size(&p, chunk, threads) + 1))) {
        *failed = 1;
        return;
    }
    if (outputs >= rows)
        split_outputs(&p, chunk, threads, scratch);
    else
        split_rows(&p, chunk, threads, scratch);
    free(scratch);
}

/* Tells whether the instructions that this was compiled for make it fast, in two precisions. */
void describe(int *is_fast) {
    is_fast[FLOAT32] = ROWS_AT_ONCE > 1;
#ifdef __AVX512BF16__
    is_fast[BFLOAT16] = ROWS_AT_ONCE > 1;
#else
    is_fast[BFLOAT16] = 0;
#endif
}
