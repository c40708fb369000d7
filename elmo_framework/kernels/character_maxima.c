/* Maxima of convolutions over the characters of words. What a character adds to a window at each of
   its places comes from a table, so that there are additions instead of products: there are few
   different characters. */
#include "packed.h"

/* Vectors of filters at once: their sums and maxima are in registers. */
#define FILTERS 4

/* Up to GROUP filters of a convolution, which become outputs from `first` on. `table` is
   "characters width GROUP", with the biases at the first place. */
typedef struct {
    long width, first, number;
    const float *table;
} filter_block;

/* The end of a word: after its last id that is neither 0 nor `padding`; -1 with an unknown id. */
static long end_of(long length, long num_ids, long padding, const int64_t *ids) {
    long end = 0;
    for (long t = 0; t < length; ++t) {
        if (ids[t] < 0 || ids[t] >= num_ids)
            return -1;
        if (ids[t] != 0 && ids[t] != padding)
            end = t + 1;
    }
    return end;
}

/* The maxima of FILTERS vectors of filters over the windows of a word. */
static inline __attribute__((always_inline)) void maxima_of_word(
    long width, long num_windows, const int64_t *ids, const float *table, lanes most[FILTERS]) {
    for (long t = 0; t < num_windows; ++t) {
        lanes sum[FILTERS] = {0};
        for (long j = 0; j < width; ++j) {
            const lanes *added = (const lanes *)(table + (ids[t + j] * width + j) * GROUP);
            for (int v = 0; v < FILTERS; ++v)
                sum[v] += added[v];
        }
        for (int v = 0; v < FILTERS; ++v) {
            /* One that is no number stays. */
            whole is_larger = t ? (sum[v] > most[v]) | (sum[v] != sum[v]) : ~(whole){0};
            most[v] = (lanes)(((whole)sum[v] & is_larger) | ((whole)most[v] & ~is_larger));
        }
    }
}

/* Fills `out`, "words outputs", from `ids`, "words length". Windows after the end of a word are all
   equal, so one of them is enough. `ends` is scratch; sets `failed` if an id is unknown. */
void character_maxima(long num_words, long length, const int64_t *ids, long num_ids, long padding,
                      long num_blocks, const filter_block *blocks, long outputs, int64_t *ends,
                      float *out, int *failed) {
    for (long word = 0; word < num_words; ++word) {
        ends[word] = end_of(length, num_ids, padding, ids + word * length);
        if (ends[word] < 0) {
            *failed = 1;
            return;
        }
    }
#pragma omp parallel for schedule(dynamic) if (num_words > 1)
    for (long i = 0; i < num_blocks; ++i) {
        const filter_block *b = blocks + i;
        for (long word = 0; word < num_words; ++word) {
            long last = length - b->width < ends[word] ? length - b->width : ends[word];
            for (long k = 0; k < b->number; k += FILTERS * LANES) {
                lanes most[FILTERS] = {0};
                maxima_of_word(b->width, last + 1, ids + word * length, b->table + k, most);
                long number = b->number - k < FILTERS * LANES ? b->number - k : FILTERS * LANES;
                memcpy(out + word * outputs + b->first + k, most, 4 * number);
            }
        }
    }
}
