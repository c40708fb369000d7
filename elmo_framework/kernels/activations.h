/* What the gates of recurrent layers are put through. */
#include <math.h>
#include <stdint.h>

/* Fast arithmetic divides by an approximate reciprocal, and that of an infinite exp is no number:
   3e38 takes its place. Comparing bits lets a sum that is no number stay none. */
static inline float sigmoid_of(float x) {
    const uint32_t infinite = 0x7f800000, largest = 0x7f7fffff;
    union {
        float number;
        uint32_t bits;
    } power = {expf(-x)};
    power.bits = power.bits == infinite ? largest : power.bits;
    return 1.0f / (1.0f + power.number);
}

/* tanh by exp, and by its series where exp would cancel. */
static inline float tanh_of(float x) {
    float e = expf(-2.0f * fabsf(x));
    float wide = copysignf((1.0f - e) / (1.0f + e), x);
    float square = x * x;
    float near = x * (1.0f + square * (-1.0f / 3.0f + square * (2.0f / 15.0f)));
    return fabsf(x) < 0.0625f ? near : wide;
}
