/* Gradients of the maxima of convolutions over their positions. Only the window of a maximum has a
   gradient, so each filter of each row adds one window to a sum. */
#include <stdint.h>

/* Filters whose sums stay in the first-level cache. */
#define FILTERS 32

static inline void add(long size, float factor, const float *restrict from, float *restrict to) {
#pragma omp simd
    for (long k = 0; k < size; ++k)
        to[k] += factor * from[k];
}

/* gradient, places: "rows filters"; inputs: "rows steps dim"; weight: "filters width dim", as the
   numbers of a window are in memory. Adds to of_inputs and of_weight, which have the same shapes. */
void window_gradients(long rows, long steps, long dim, long filters, long width,
                      const float *gradient, const int64_t *places, const float *inputs,
                      const float *weight, long threads, float *of_inputs, float *of_weight) {
    long size = width * dim;
#pragma omp parallel num_threads((int)threads)
    {
#pragma omp for schedule(static) nowait
        for (long row = 0; row < rows; ++row)
            for (long f = 0; f < filters; ++f)
                if (gradient[row * filters + f] != 0.0f)
                    add(size, gradient[row * filters + f], weight + f * size,
                        of_inputs + (row * steps + places[row * filters + f]) * dim);
#pragma omp for schedule(static)
        for (long first = 0; first < filters; first += FILTERS) {
            long end = first + FILTERS < filters ? first + FILTERS : filters;
            for (long row = 0; row < rows; ++row)
                for (long f = first; f < end; ++f)
                    if (gradient[row * filters + f] != 0.0f)
                        add(size, gradient[row * filters + f],
                            inputs + (row * steps + places[row * filters + f]) * dim,
                            of_weight + f * size);
        }
    }
}
