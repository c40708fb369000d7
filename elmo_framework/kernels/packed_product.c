/* Products of rows with packed weights, one call each. */
#include <stdlib.h>

#include "packed.h"

/* `narrow` and `scales` are scratch, which float32 does not need. */
void product_of_rows(const packed_weight *weight, long rows, const float *row, char *narrow,
                     float *scales, float *out) {
    long inputs = weight->inputs, size = row_bytes(weight->precision, inputs);
    if (weight->precision != FLOAT32) {
#pragma omp parallel for schedule(static) if (rows * inputs > 65536)
        for (long r = 0; r < rows; ++r)
            scales[r] =
                rounded_row(weight->precision, inputs, row + r * inputs, narrow + r * size);
    }
    packed_product(weight, rows, weight->precision == FLOAT32 ? (const void *)row : narrow, scales,
                   0, out);
}
