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
/* The numbers of a vector, and the rows that are multiplied at once: their sums fill the registers. */
#ifdef __AVX512F__
#define LANES 16
#define ROWS 6
#else
#define LANES 8
#define ROWS 1
#endif
/* Vectors of outputs that are summed next to each other: one sum would wait for its last addition. */
#define VECTORS (GROUP / LANES)

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t whole __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint32_t words32 __attribute__((vector_size(4 * LANES), aligned(4)));

enum { FLOAT32, BFLOAT16, INT8 };

/* `blocks` is "outputs/GROUP inputs/N GROUP N", with N numbers of a row in 32 bits (1, 2 or 4).
   In float32, partial sums of `chunk` inputs are added up, as oneDNN does. In int8 each output has
   a scale, and an offset: -128 times the sum of its weights, as rows are shifted by 128. */
typedef struct {
    const void *blocks;
    const float *bias, *scales;
    const int32_t *offsets;
    long outputs, inputs, chunk, precision;
} packed_weight;

/* A row as a product reads it takes `row_bytes`. */
static inline long row_bytes(long precision, long inputs) {
    return precision == FLOAT32 ? 4 * inputs : precision == BFLOAT16 ? 2 * inputs : inputs;
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

static inline __attribute__((always_inline)) void float_sums(
    const int rows, long inputs, long chunk, const float *restrict weight,
    const float *restrict row, long stride, lanes total[ROWS][VECTORS]) {
    for (long first = 0; first < inputs; first += chunk) {
        lanes sum[ROWS][VECTORS] = {0};
        long end = first + chunk < inputs ? first + chunk : inputs;
        for (long k = first; k < end; ++k) {
            const lanes *w = (const lanes *)(weight + k * GROUP);
#pragma GCC unroll 6
            for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
                for (int v = 0; v < VECTORS; ++v)
                    sum[r][v] += w[v] * row[r * stride + k];
        }
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
            for (int v = 0; v < VECTORS; ++v)
                total[r][v] = first ? total[r][v] + sum[r][v] : sum[r][v];
    }
}

/* Adds the products of a block's pairs of inputs with the pair of a row. */
static inline __attribute__((always_inline)) void add_pairs(lanes sum[VECTORS], const words32 *w,
                                                            uint32_t pair) {
#ifdef __AVX512BF16__
    __m512bh both = (__m512bh)_mm512_set1_epi32((int)pair);
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v)
        sum[v] = (lanes)_mm512_dpbf16_ps((__m512)sum[v], (__m512bh)w[v], both);
#else
    union {
        uint32_t bits;
        float number;
    } low = {pair << 16}, high = {pair & 0xffff0000u};
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) {
        sum[v] += (lanes)(w[v] << 16) * low.number;
        sum[v] += (lanes)(w[v] & 0xffff0000u) * high.number;
    }
#endif
}

static inline __attribute__((always_inline)) void bfloat16_sums(
    const int rows, long inputs, const uint32_t *restrict weight, const uint16_t *restrict row,
    long stride, lanes total[ROWS][VECTORS]) {
    lanes sum[ROWS][VECTORS] = {0};
    for (long k = 0; k < inputs; k += 2) {
        const words32 *w = (const words32 *)(weight + k / 2 * GROUP);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) {
            uint32_t pair;
            memcpy(&pair, row + r * stride + k, 4);
            add_pairs(sum[r], w, pair);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; ++v)
            total[r][v] = sum[r][v];
}

static inline __attribute__((always_inline)) void int8_sums(
    const int rows, long inputs, const int32_t *restrict weight, const int32_t *restrict offsets,
    const uint8_t *restrict row, long stride, whole total[ROWS][VECTORS]) {
    whole sum[ROWS][VECTORS];
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; ++v)
            sum[r][v] = ((const whole *)offsets)[v];
    for (long k = 0; k < inputs; k += 4) {
        const whole *w = (const whole *)(weight + k / 4 * GROUP);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) {
            const uint8_t *x = row + r * stride + k;
#ifdef __AVX512VNNI__
            int32_t four;
            memcpy(&four, x, 4);
            __m512i all = _mm512_set1_epi32(four);
#pragma GCC unroll 8
            for (int v = 0; v < VECTORS; ++v)
                sum[r][v] = (whole)_mm512_dpbusd_epi32((__m512i)sum[r][v], all, (__m512i)w[v]);
#else
#pragma GCC unroll 8
            for (int v = 0; v < VECTORS; ++v)
                sum[r][v] += (w[v] << 24 >> 24) * (int)x[0] + (w[v] << 16 >> 24) * (int)x[1] +
                             (w[v] << 8 >> 24) * (int)x[2] + (w[v] >> 24) * (int)x[3];
#endif
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; ++v)
            total[r][v] = sum[r][v];
}

/* One block of outputs of up to ROWS rows. */
static inline __attribute__((always_inline)) void block_of_outputs(
    const int rows, const packed_weight *w, long n, const char *x, const float *scales, long stride,
    lanes total[ROWS][VECTORS]) {
    const char *blocks = (const char *)w->blocks + n * row_bytes(w->precision, w->inputs);
    if (w->precision == FLOAT32)
        float_sums(rows, w->inputs, w->chunk, (const float *)blocks, (const float *)x, stride, total);
    else if (w->precision == BFLOAT16)
        bfloat16_sums(rows, w->inputs, (const uint32_t *)blocks, (const uint16_t *)x, stride, total);
    else {
        whole sums[ROWS][VECTORS];
        int8_sums(rows, w->inputs, (const int32_t *)blocks, w->offsets + n, (const uint8_t *)x,
                  stride, sums);
        for (int r = 0; r < rows; ++r)
            for (int v = 0; v < VECTORS; ++v)
                total[r][v] = __builtin_convertvector(sums[r][v], lanes) *
                              (*(const lanes *)(w->scales + n + v * LANES) * scales[r]);
    }
    if (w->bias)
        for (int r = 0; r < rows; ++r)
            for (int v = 0; v < VECTORS; ++v)
                total[r][v] += *(const lanes *)(w->bias + n + v * LANES);
}

/* The outputs of `rows` rounded rows, `stride` numbers apart. The blocks are read from the last one
   if `is_backward`: the end of a weight that is a little larger than the cache is still in it after
   the product before. */
static inline void packed_product(const packed_weight *w, long rows, const void *x,
                                  const float *scales, long stride, int is_backward,
                                  float *restrict out) {
    long row_size = row_bytes(w->precision, 1);
#pragma omp parallel for schedule(static) if (rows * w->outputs * w->inputs > 65536)
    for (long i = 0; i < w->outputs; i += GROUP) {
        long n = is_backward ? w->outputs - GROUP - i : i;
        for (long first = 0; first < rows; first += ROWS) {
            lanes total[ROWS][VECTORS];
            const char *start = (const char *)x + first * stride * row_size;
            const float *of_rows = scales + first;
            int number = rows - first < ROWS ? (int)(rows - first) : ROWS;
            switch (number) {
#ifdef __AVX512F__
            case 6:
                block_of_outputs(6, w, n, start, of_rows, stride, total);
                break;
            case 5:
                block_of_outputs(5, w, n, start, of_rows, stride, total);
                break;
            case 4:
                block_of_outputs(4, w, n, start, of_rows, stride, total);
                break;
            case 3:
                block_of_outputs(3, w, n, start, of_rows, stride, total);
                break;
            case 2:
                block_of_outputs(2, w, n, start, of_rows, stride, total);
                break;
#endif
            default:
                block_of_outputs(1, w, n, start, of_rows, stride, total);
            }
            for (int r = 0; r < number; ++r)
                memcpy(out + (first + r) * w->outputs + n, total[r], sizeof total[r]);
        }
    }
}
