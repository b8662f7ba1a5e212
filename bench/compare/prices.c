/* Yardstick: what a small program pays, as a C compiler writes it at -O2. Lines "name ns ns": median and 5 % quantile of batches, or of turns.
   prices [CPU]: with a second CPU also what two threads pay that meet. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static double x[1000] __attribute__((aligned(4096))), y[1000] __attribute__((aligned(4096)));
static int zero, ends[2];

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void check(int ok) {
    if (!ok) abort();
}

static void *nothing(void *argument) { return argument; }

static void fork_exit_wait(void) {
    int status, child = fork();
    if (child == 0) _exit(42);
    check(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 42);
}

static void thread_create_join(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static void spawn_true(void) {
    int status, child;
    char *arguments[] = {"/bin/true", NULL};
    check(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
    check(waitpid(child, &status, 0) == child && status == 0);
}

static void getppid_libc(void) { check(syscall(SYS_getppid) >= 0); }

static inline void getppid_inline(void) {
    long parent;
#if defined(__x86_64__)
    __asm__ volatile("syscall" : "=a"(parent) : "a"(SYS_getppid) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = SYS_getppid, x0 __asm__("x0");
    __asm__ volatile("svc 0" : "=r"(x0) : "r"(x8) : "memory");
    parent = x0;
#else
#error "no system call instruction known for this processor"
#endif
    check(parent >= 0);
}

static void read_zero(void) {
    char byte;
    check(read(zero, &byte, 1) == 1);
}

static void pipe_byte(void) {
    char byte = 7;
    check(write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1);
}

/* Four elements a turn, as LINPACK has it. */
static void daxpy(void) {
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < 1000; i += 4) {
        y[i] += 3.0 * x[i];
        y[i + 1] += 3.0 * x[i + 1];
        y[i + 2] += 3.0 * x[i + 2];
        y[i + 3] += 3.0 * x[i + 3];
    }
}

/* Of registers: some processors add constants while they rename. */
#if defined(__x86_64__)
#define ONE __asm__ volatile("add %1, %0" : "+r"(sum) : "r"(one));
#else
#define ONE __asm__ volatile("add %0, %0, %1" : "+r"(sum) : "r"(one));
#endif

static void adds(void) {
    uint64_t sum = 1, one = 1;
    for (int i = 0; i < 1024; i++) {
        ONE ONE ONE ONE
    }
    __asm__ volatile("" ::"r"(sum));
}

/* Through pointers, so that the compiler writes calls. */
static void *(*volatile memcpy_of)(void *, const void *, size_t) = memcpy;
static void *(*volatile memset_of)(void *, int, size_t) = memset;
static char from[64] __attribute__((aligned(64))), to[64] __attribute__((aligned(4096)));

static void copies(void) {
    void *(*call)(void *, const void *, size_t) = memcpy_of;
    for (int i = 0; i < 1024; i++) call(to, from, 64);
}

static void fills(void) {
    void *(*call)(void *, int, size_t) = memset_of;
    for (int i = 0; i < 1024; i++) call(to, i | 1, 64);
}

static int ascending(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

/* Batches of about 0.1 ms for half a second; `each` operations a turn. */
#define PRICE(name, operation, each)                                                      \
    do {                                                                                  \
        enum { MOST = 4000 };                                                             \
        static double taken[MOST];                                                        \
        long turns = 1, n = 0;                                                            \
        for (double ns = 0; ns < 1e5; turns *= 2) {                                       \
            double begin = now_ns();                                                      \
            for (long i = 0; i < turns; i++) operation();                                 \
            if ((ns = now_ns() - begin) >= 1e5) break;                                    \
        }                                                                                 \
        for (double end = now_ns() + 5e8; n < MOST && now_ns() < end; n++) {              \
            double begin = now_ns();                                                      \
            for (long i = 0; i < turns; i++) operation();                                 \
            taken[n] = (now_ns() - begin) / turns / each;                                 \
        }                                                                                 \
        qsort(taken, n, sizeof *taken, ascending);                                        \
        printf("%s %.4f %.4f\n", name, taken[n / 2], taken[n / 20]);                      \
    } while (0)

static pthread_barrier_t meeting;
/* Turn after which both end. */
static volatile long last = -1;

static long sleeps(void) {
    struct rusage usage;
    check(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;
}

static void *partner(void *cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((long)cpu, &set);
    check(pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0);
    long before = sleeps();
    for (long n = 0; n != last; n++) pthread_barrier_wait(&meeting);
    return (void *)(sleeps() - before);
}

/* Every two by themselves, for half a second: a thread sleeps at one and wakes the other at the next. */
static void barrier_of_two(long cpu) {
    enum { MOST = 50000 };
    static double taken[MOST];
    pthread_t thread;
    void *others;
    long n = 0, before = sleeps();
    check(pthread_barrier_init(&meeting, NULL, 2) == 0);
    check(pthread_create(&thread, NULL, partner, (void *)cpu) == 0);
    double begin = now_ns(), end = begin + 5e8;
    while (2 * n != last) {
        if (n + 1 == MOST || begin >= end) last = 2 * (n + 1);
        pthread_barrier_wait(&meeting);
        pthread_barrier_wait(&meeting);
        double now = now_ns();
        taken[n++] = (now - begin) / 2;
        begin = now;
    }
    check(pthread_join(thread, &others) == 0);
    double each = (sleeps() - before + (long)others) / (2.0 * n);
    qsort(taken, n, sizeof *taken, ascending);
    printf("barrier_pthread %.1f %.1f\nbarrier_sleeps %.4f %.4f\n", taken[n / 2], taken[n / 20], each, each);
}

int main(int count, char **arguments) {
    for (int i = 0; i < 1000; i++) x[i] = 1;
    zero = open("/dev/zero", O_RDONLY);
    check(zero >= 0 && pipe(ends) == 0);
    PRICE("add", adds, 4096);
    PRICE("daxpy", daxpy, 1);
    PRICE("memcpy_64", copies, 1024);
    PRICE("memset_64", fills, 1024);
    PRICE("getppid_libc", getppid_libc, 1);
    PRICE("getppid_inline", getppid_inline, 1);
    PRICE("read_zero", read_zero, 1);
    PRICE("pipe", pipe_byte, 1);
    PRICE("fork_exit_wait", fork_exit_wait, 1);
    PRICE("spawn_true", spawn_true, 1);
    /* Last: a process that had a thread is another for the C library. */
    PRICE("thread_create_join", thread_create_join, 1);
    if (count > 1) barrier_of_two(atol(arguments[1]));
    return 0;
}
