/* Products of a few rows with packed weights, one call each. */
#include <stdlib.h>

#include "packed.h"

/* Rounds rows to `narrow`, with a scale each. */
void round_rows(long precision, long rows, long inputs, const float *row, char *narrow,
                float *scales) {
    for (long r = 0; r < rows; ++r)
        scales[r] = rounded_row(precision, inputs, row + r * inputs,
                                narrow + r * row_bytes(precision, inputs));
}

/* `narrow` is scratch. */
void product_of_rows(const packed_weight *weight, long rows, const float *row, char *narrow,
                     float *scales, float *out) {
    round_rows(weight->precision, rows, weight->inputs, row, narrow, scales);
    packed_product(weight, rows, narrow, scales, weight->inputs, 0, out);
}
