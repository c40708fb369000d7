/* The products of a layer whose steps are one call. */
#include <stdint.h>

/* Multiplications for which starting another thread pays off. */
#define PER_THREAD 65536

/* `blocked_product` of blocked_product.c. */
typedef void product_function(long precision, long rows, long inputs, long outputs,
                              const float *matrix, long row_stride, long input_stride,
                              const uint32_t *blocks, const float *bias, long threads, float *out,
                              int *failed);

/* The product of a step's rows, which are next to each other, with at most `most` threads. */
static inline void step_product(product_function *product, long precision, long most, long rows,
                                long inputs, long outputs, const float *from,
                                const uint32_t *blocks, float *out, int *failed) {
    long threads = rows * inputs * outputs / PER_THREAD;
    threads = threads < 1 ? 1 : threads < most ? threads : most;
    product(precision, rows, inputs, outputs, from, inputs, 1, blocks, 0, threads, out, failed);
}
