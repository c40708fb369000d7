/* Products of rows with packed weights, in three precisions. A weight is packed in blocks of GROUP
   outputs, in the order in which a product reads it: no output waits for the one before, and nothing
   is compiled for a number of rows. An output does not depend on the other rows. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define GROUP 64
/* The numbers of a vector; the rows that are multiplied at once, and the vectors of outputs that are
   summed next to each other. Their sums fill the registers: one sum would wait for its last
   addition. */
#define ROWS 6
#ifdef __AVX512F__
#define LANES 16
#define VECTORS(rows) 4
#else
#define LANES 8
#define VECTORS(rows) ((rows) == 1 ? 8 : (rows) <= 3 ? 4 : 2)
#endif
#define MOST_VECTORS (GROUP / LANES)
/* Inputs, in 32 bits, over which a product sums at once: a block of so many fits into the
   second-level cache. Partial sums are then added up. */
#define LONGEST 768
/* Rows of a task: enough to use a block often while it is in the cache. */
#define ROWS_OF_TASK 192

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t whole __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint32_t words32 __attribute__((vector_size(4 * LANES), aligned(4)));

enum { FLOAT32, BFLOAT16, INT8 };

/* `blocks` is "outputs/GROUP inputs/N GROUP N", with N numbers of a row in 32 bits (1, 2 or 4).
   In int8 each output has a scale, and an offset: -128 times the sum of its weights, as rows are
   shifted by 128. */
typedef struct {
    const void *blocks;
    const float *bias, *scales;
    const int32_t *offsets;
    long outputs, inputs, precision;
} packed_weight;

/* A row as a product reads it takes `row_bytes`. */
static inline long row_bytes(long precision, long inputs) {
    return precision == FLOAT32 ? 4 * inputs : precision == BFLOAT16 ? 2 * inputs : inputs;
}

/* The length of partial sums of `depth` numbers. */
static inline long chunk_of(long depth) {
    long parts = (depth + LONGEST - 1) / LONGEST;
    return parts ? (depth + parts - 1) / parts : 1;
}

static inline uint16_t bfloat16_of(float x) {
    union {
        float number;
        uint32_t bits;
    } wide = {x};
    if (x != x)
        return 0x7fc0;
    return (uint16_t)((wide.bits + 0x7fff + ((wide.bits >> 16) & 1)) >> 16); /* to even */
}

/* Rounds a row; returns its scale, which is no number if one of the row is none. */
static inline float rounded_row(long precision, long inputs, const float *restrict row,
                                void *restrict out) {
    if (precision == FLOAT32) {
        memcpy(out, row, 4 * inputs);
        return 1.0f;
    }
    if (precision == BFLOAT16) {
        uint16_t *narrow = out;
        for (long k = 0; k < inputs; ++k)
            narrow[k] = bfloat16_of(row[k]);
        return 1.0f;
    }
    uint8_t *narrow = out;
    /* The bits of positive numbers have the order of the numbers, and NaN is above all. */
    uint32_t largest = 0;
    for (long k = 0; k < inputs; ++k) {
        uint32_t bits;
        memcpy(&bits, row + k, 4);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    float limit;
    memcpy(&limit, &largest, 4);
    float scale = (limit < 1e-30f ? 1e-30f : limit) / 127.0f;
    for (long k = 0; k < inputs; ++k) {
        /* 1.5 * 2^23 leaves no place for fractions, and whole numbers in the lowest bits. */
        float rounded = row[k] / scale + 12582912.0f;
        uint32_t bits;
        memcpy(&bits, &rounded, 4);
        narrow[k] = (uint8_t)(bits + 128);
    }
    return scale;
}

/* What a product reads: of a weight, GROUP outputs from `n` on, and inputs `first` to `end`, in 32
   bits; the rows from `row` on, one after the other. */
typedef struct {
    const packed_weight *weight;
    long depth, n, first, end;
    const char *row;
    const float *scales;
    float *out;
} part_of_product;

/* Adds the products of a block's outputs with some rows. */
static inline __attribute__((always_inline)) void float_sums(
    const int rows, const int vectors, const part_of_product *p, const uint32_t *restrict block,
    lanes sum[ROWS][MOST_VECTORS]) {
    const float *row = (const float *)p->row;
    for (long k = p->first; k < p->end; ++k) {
        const lanes *w = (const lanes *)(block + k * GROUP);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v)
                sum[r][v] += w[v] * row[r * p->depth + k];
    }
}

/* Adds the products of a block's pairs of inputs with the pair of a row. */
static inline __attribute__((always_inline)) void add_pairs(const int vectors, lanes *sum,
                                                            const words32 *w, uint32_t pair) {
#ifdef __AVX512BF16__
    __m512bh both = (__m512bh)_mm512_set1_epi32((int)pair);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
        sum[v] = (lanes)_mm512_dpbf16_ps((__m512)sum[v], (__m512bh)w[v], both);
#else
    words32 both = (words32){0} + pair;
    lanes low = (lanes)(both << 16), high = (lanes)(both & 0xffff0000u);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
        sum[v] += (lanes)(w[v] << 16) * low;
        sum[v] += (lanes)(w[v] & 0xffff0000u) * high;
    }
#endif
}

static inline __attribute__((always_inline)) void bfloat16_sums(
    const int rows, const int vectors, const part_of_product *p, const uint32_t *restrict block,
    lanes sum[ROWS][MOST_VECTORS]) {
    for (long k = p->first; k < p->end; ++k) {
        const words32 *w = (const words32 *)(block + k * GROUP);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) {
            uint32_t pair;
            memcpy(&pair, p->row + 4 * (r * p->depth + k), 4);
            add_pairs(vectors, sum[r], w, pair);
        }
    }
}

static inline __attribute__((always_inline)) void int8_sums(
    const int rows, const int vectors, const part_of_product *p, const uint32_t *restrict block,
    const int32_t *restrict offsets, whole sum[ROWS][MOST_VECTORS]) {
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v)
            sum[r][v] = p->first ? (whole){0} : ((const whole *)offsets)[v];
    for (long k = p->first; k < p->end; ++k) {
        const whole *w = (const whole *)(block + k * GROUP);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) {
            const uint8_t *x = (const uint8_t *)p->row + 4 * (r * p->depth + k);
#ifdef __AVX512VNNI__
            int32_t four;
            memcpy(&four, x, 4);
            __m512i all = _mm512_set1_epi32(four);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v)
                sum[r][v] = (whole)_mm512_dpbusd_epi32((__m512i)sum[r][v], all, (__m512i)w[v]);
#else
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v)
                sum[r][v] += (w[v] << 24 >> 24) * (int)x[0] + (w[v] << 16 >> 24) * (int)x[1] +
                             (w[v] << 8 >> 24) * (int)x[2] + (w[v] >> 24) * (int)x[3];
#endif
        }
    }
}

/* The sums of the outputs from `column` of the block on. */
static inline __attribute__((always_inline)) void sums_of_columns(
    const int rows, const int vectors, const part_of_product *p, long column,
    lanes total[ROWS][MOST_VECTORS]) {
    const packed_weight *w = p->weight;
    const uint32_t *block = (const uint32_t *)w->blocks + p->n * p->depth + column;
    if (w->precision == INT8) {
        whole sums[ROWS][MOST_VECTORS];
        int8_sums(rows, vectors, p, block, w->offsets + p->n + column, sums);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v)
                total[r][v] =
                    __builtin_convertvector(sums[r][v], lanes) *
                    (*(const lanes *)(w->scales + p->n + column + v * LANES) * p->scales[r]);
        return;
    }
    lanes sum[ROWS][MOST_VECTORS] = {0};
    if (w->precision == FLOAT32)
        float_sums(rows, vectors, p, block, sum);
    else
        bfloat16_sums(rows, vectors, p, block, sum);
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v)
            total[r][v] = sum[r][v];
}

static inline __attribute__((always_inline)) void outputs_of_rows(const int rows,
                                                                  const part_of_product *p) {
    const packed_weight *w = p->weight;
    const int vectors = VECTORS(rows);
    for (long column = 0; column < GROUP; column += vectors * LANES) {
        lanes total[ROWS][MOST_VECTORS];
        sums_of_columns(rows, vectors, p, column, total);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) {
                long at = p->n + column + v * LANES;
                lanes *out = (lanes *)(p->out + r * w->outputs + at), sum = total[r][v];
                if (p->first)
                    sum += *out;
                if (w->bias && p->end == p->depth)
                    sum += *(const lanes *)(w->bias + at);
                *out = sum;
            }
    }
}

/* GROUP outputs, from `n` on, of some rounded rows. */
static inline void block_of_outputs(const packed_weight *w, long n, long rows, const void *x,
                                    const float *scales, float *out) {
    long depth = row_bytes(w->precision, w->inputs) / 4, chunk = chunk_of(depth);
    for (long first = 0; first < depth; first += chunk)
        for (long row = 0; row < rows; row += ROWS) {
            long end = first + chunk < depth ? first + chunk : depth;
            part_of_product p = {w,
                                 depth,
                                 n,
                                 first,
                                 end,
                                 (const char *)x + 4 * row * depth,
                                 scales + row,
                                 out + row * w->outputs};
            switch (rows - row < ROWS ? rows - row : ROWS) {
            case 6:
                outputs_of_rows(6, &p);
                break;
            case 5:
                outputs_of_rows(5, &p);
                break;
            case 4:
                outputs_of_rows(4, &p);
                break;
            case 3:
                outputs_of_rows(3, &p);
                break;
            case 2:
                outputs_of_rows(2, &p);
                break;
            default:
                outputs_of_rows(1, &p);
            }
        }
}

/* The outputs of `rows` rounded rows. The blocks are read from the last one if `is_backward`: the end
   of a weight that is a little larger than the cache is still in it after the product before. */
static inline void packed_product(const packed_weight *w, long rows, const void *x,
                                  const float *scales, int is_backward, float *restrict out) {
    long size = row_bytes(w->precision, w->inputs);
#pragma omp parallel for schedule(static) collapse(2) if (rows * w->outputs * w->inputs > 65536)
    for (long i = 0; i < w->outputs; i += GROUP)
        for (long row = 0; row < rows; row += ROWS_OF_TASK) {
            long number = rows - row < ROWS_OF_TASK ? rows - row : ROWS_OF_TASK;
            block_of_outputs(w, is_backward ? w->outputs - GROUP - i : i, number,
                             (const char *)x + row * size, scales + row, out + row * w->outputs);
        }
}
