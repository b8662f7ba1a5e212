/* Yardstick: the smallest loop that can measure noise, as a C compiler writes it at -O2. Prints ns per turn. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t ticks(void) { return __rdtsc(); }
#elif defined(__aarch64__)
static inline uint64_t ticks(void) { uint64_t t; __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t)); return t; }
#else
#error "no tick counter known for this processor"
#endif

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(void) {
    enum { BURSTS = 400 };
    double best = 1e9, t0 = now_ns();
    uint64_t c0 = ticks();
    while (now_ns() - t0 < 5e7) {
    }
    double ns_per_tick = (now_ns() - t0) / (double)(ticks() - c0);
    uint64_t burst = (uint64_t)(1e6 / ns_per_tick), threshold = (uint64_t)(50 / ns_per_tick);
    for (int b = 0; b < BURSTS; b++) {
        uint64_t start = ticks(), previous = start, end = start + burst, turns = 0, gaps = 0, now;
        do {
            now = ticks();
            turns++;
            if (now - previous >= threshold) gaps++;
            previous = now;
        } while (now < end);
        double turn = (double)(now - start) * ns_per_tick / (double)turns;
        if (gaps < 1000000 && turn < best) best = turn;
    }
    printf("%.3f\n", best);
    return 0;
}
