/* The product of one row with a weight, read once from memory, with the bits that oneDNN gives a
   row among others: each output is one sum, in the order of the inputs, in chunks of a length that
   is oneDNN's own. Sixteen outputs are summed beside each other. */
#define LANES 16

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int places __attribute__((vector_size(4 * LANES)));

/* Turns a tile round, in four passes over pairs of rows. */
static inline __attribute__((always_inline)) void turn(lanes *tile) {
    static const places even[4] = {
        {0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30},
        {0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29},
        {0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27},
        {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}};
#pragma GCC unroll 4
    for (int pass = 0; pass < 4; ++pass) {
        int step = 1 << pass;
#pragma GCC unroll 16
        for (int i = 0; i < LANES; ++i)
            if (!(i & step)) {
                lanes a = tile[i], b = tile[i + step];
                tile[i] = __builtin_shuffle(a, b, even[pass]);
                tile[i + step] = __builtin_shuffle(a, b, even[pass] + step);
            }
    }
}

/* `outputs`, `inputs` and `chunk` are multiples of LANES. */
void row_product(long outputs, long inputs, long chunk, const float *restrict weight,
                 const float *restrict row, float *restrict out) {
#pragma omp parallel for schedule(static) if (outputs * inputs > 65536)
    for (long n = 0; n < outputs; n += LANES) {
        lanes total = {0};
        for (long first = 0; first < inputs; first += chunk) {
            lanes sum = {0};
            long end = first + chunk < inputs ? first + chunk : inputs;
            for (long k = first; k < end; k += LANES) {
                const float *start = weight + n * inputs + k;
                lanes tile[LANES];
#pragma GCC unroll 16
                for (int i = 0; i < LANES; ++i) {
                    tile[i] = *(const lanes *)(start + i * inputs);
                    /* What the next sixteen outputs need, line after line. */
                    __builtin_prefetch(weight + (n + LANES) * inputs + LANES * (k + i));
                }
                turn(tile);
#pragma GCC unroll 16
                for (int i = 0; i < LANES; ++i)
                    sum += tile[i] * row[k + i];
            }
            total += sum;
        }
        *(lanes *)(out + n) = total;
    }
}
