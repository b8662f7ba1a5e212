/* Yardstick: what a small program pays, as a C compiler writes it at -O2. Lines "name ns ns": median and 5 % quantile of batches, or of turns.
   prices DIRECTORY [CPU]: files lie in the directory; with a second CPU also what two threads pay that meet. Buffers begin at a page. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static double x[10000] __attribute__((aligned(4096))), y[10000] __attribute__((aligned(4096)));
static char page[4096] __attribute__((aligned(4096)));
static char message[16384] __attribute__((aligned(4096))), received[16384] __attribute__((aligned(4096)));
static int zero, null, ends[2], sockets[2], file, event, timer, waiting, word = 0;
static int ready[64];
static struct pollfd polled[8];
static char *data_path, *guarded, *touched;
static size_t next_page;
enum { TOUCHED = 6400, TOUCHED_A_BATCH = 512 };

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

static void pipe_4k(void) { check(write(ends[1], message, 4096) == 4096 && read(ends[0], received, 4096) == 4096); }
static void unix_16k(void) { check(write(sockets[1], message, 16384) == 16384 && read(sockets[0], received, 16384) == 16384); }

/* Four elements a turn, as LINPACK has it. */
static void daxpy(int elements) {
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < elements; i += 4) {
        y[i] += 3.0 * x[i];
        y[i + 1] += 3.0 * x[i + 1];
        y[i + 2] += 3.0 * x[i + 2];
        y[i + 3] += 3.0 * x[i + 3];
    }
}

static void daxpy_100(void) { daxpy(100); }
static void daxpy_1000(void) { daxpy(1000); }
static void daxpy_10000(void) { daxpy(10000); }

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
static char from[1 << 20] __attribute__((aligned(4096))), to[1 << 20] __attribute__((aligned(4096)));

static void copies(size_t bytes, int times) {
    void *(*call)(void *, const void *, size_t) = memcpy_of;
    for (int i = 0; i < times; i++) call(to, from, bytes);
}

static void fills(size_t bytes, int times) {
    void *(*call)(void *, int, size_t) = memset_of;
    for (int i = 0; i < times; i++) call(to, i | 1, bytes);
}

static void copies_64(void) { copies(64, 1024); }
static void copies_4k(void) { copies(4096, 64); }
static void copies_64k(void) { copies(65536, 8); }
static void fills_64(void) { fills(64, 1024); }
static void fills_4k(void) { fills(4096, 64); }
static void fills_64k(void) { fills(65536, 8); }

static void *(*volatile malloc_of)(size_t) = malloc;
static void (*volatile free_of)(void *) = free;

static void malloc_64(void) {
    char *block = malloc_of(64);
    check(block != NULL);
    *(volatile char *)block = 1;
    free_of(block);
}

static void malloc_4k(void) {
    char *block = malloc_of(4096);
    check(block != NULL);
    *(volatile char *)block = 1;
    free_of(block);
}

static void gettid_call(void) { check(syscall(SYS_gettid) > 0); }

static void raw_clock(void) {
    struct timespec t;
    check(clock_gettime(CLOCK_MONOTONIC_RAW, &t) == 0);
}

static void monotonic(void) { check(now_ns() > 0); }

static void monotonic_call(void) {
    struct timespec t;
    check(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) == 0);
}

static void usage_of_thread(void) {
    struct rusage usage;
    check(getrusage(RUSAGE_THREAD, &usage) == 0);
}

static void random_16(void) { check(syscall(SYS_getrandom, page, 16, 0) == 16); }
static void yield(void) { check(sched_yield() == 0); }
static void wake_nobody(void) { check(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0); }

static volatile long caught;
static void on_signal(int signal) { (void)signal, caught++; }

static void install(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    check(sigaction(SIGRTMIN + 7, &action, &before) == 0);
}

static void catch_one(void) {
    long before = caught;
    check(syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGRTMIN + 7) == 0 && caught == before + 1);
}

static void write_null(void) { check(write(null, page, 1) == 1); }

static void add_event(void) {
    uint64_t count = 1;
    check(write(event, &count, 8) == 8 && read(event, &count, 8) == 8 && count == 1);
}

static void set_timer(void) {
    struct itimerspec far = {.it_value = {.tv_sec = 1000}};
    check(timerfd_settime(timer, 0, &far, NULL) == 0);
}

static void ask_epoll(void) {
    struct epoll_event events[4];
    check(epoll_wait(waiting, events, 4, 0) == 1);
}

static void ask_poll(void) { check(poll(polled, 8, 0) == 1); }

static void ask_select(int count) {
    fd_set set;
    int highest = 0;
    struct timeval none = {0};
    FD_ZERO(&set);
    for (int i = 64 - count; i < 64; i++) {
        FD_SET(ready[i], &set);
        if (ready[i] > highest) highest = ready[i];
    }
    check(select(highest + 1, &set, NULL, NULL, &none) == 1);
}

static void select_8(void) { ask_select(8); }
static void select_64(void) { ask_select(64); }

/* Other rights than those of its neighbors, which would be merged with it. */
static void map(size_t bytes) {
    char *at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED && munmap(at, bytes) == 0);
}

static void map_4k(void) { map(4096); }
static void map_1m(void) { map(1 << 20); }

static void protect(void) {
    check(mprotect(guarded, 4096, PROT_READ) == 0 && mprotect(guarded, 4096, PROT_READ | PROT_WRITE) == 0);
}

/* 25 MiB in a row, as a program that grows; given back outside the time. */
static void touch(void) { *(volatile char *)(touched + 4096 * next_page++) = 1; }
static void give_back(void) {
    if (next_page + TOUCHED_A_BATCH <= TOUCHED) return;
    check(madvise(touched, 4096 * TOUCHED, MADV_DONTNEED) == 0);
    next_page = 0;
}

static void stat_file(void) {
    struct stat seen;
    check(stat(data_path, &seen) == 0 && seen.st_size == 1 << 20);
}

static void open_file(void) {
    int opened = open(data_path, O_RDONLY | O_CLOEXEC);
    check(opened >= 0 && close(opened) == 0);
}

static void seek_file(void) { check(lseek(file, 4096, SEEK_SET) == 4096); }
static void read_4k(void) { check(pread(file, page, 4096, 8192) == 4096); }
static void write_4k(void) { check(pwrite(file, page, 4096, 8192) == 4096); }

static int ascending(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

/* An operation: what is called, how many it does in a call, and calls a batch at most before `again` is called, outside the time. */
struct price {
    const char *name;
    void (*call)(void);
    double each;
    long most;
    void (*again)(void);
};

static double batch_ns(const struct price *p, long turns) {
    if (p->again) p->again();
    double begin = now_ns();
    for (long i = 0; i < turns; i++) p->call();
    return now_ns() - begin;
}

/* Batches of about 0.1 ms for a quarter of a second. */
static void price(const struct price *p) {
    enum { MOST = 2500 };
    static double taken[MOST];
    long turns = 1, most = p->most ? p->most : 1L << 40, n = 0;
    while (2 * turns <= most && batch_ns(p, turns) < 1e5) turns *= 2;
    for (double end = now_ns() + 2.5e8; n < MOST && now_ns() < end; n++) taken[n] = batch_ns(p, turns) / turns / p->each;
    qsort(taken, n, sizeof *taken, ascending);
    printf("%s %.4f %.4f\n", p->name, taken[n / 4], taken[n / 20]);
}

static const struct price PRICES[] = {
    {"add", adds, 4096, 0, NULL},
    {"daxpy_100", daxpy_100, 1, 0, NULL},
    {"daxpy_1000", daxpy_1000, 1, 0, NULL},
    {"daxpy_10000", daxpy_10000, 1, 0, NULL},
    {"memcpy_64", copies_64, 1024, 0, NULL},
    {"memcpy_4k", copies_4k, 64, 0, NULL},
    {"memcpy_64k", copies_64k, 8, 0, NULL},
    {"memset_64", fills_64, 1024, 0, NULL},
    {"memset_4k", fills_4k, 64, 0, NULL},
    {"memset_64k", fills_64k, 8, 0, NULL},
    {"malloc_64", malloc_64, 1, 0, NULL},
    {"malloc_4k", malloc_4k, 1, 0, NULL},
    {"clock_raw", raw_clock, 1, 0, NULL},
    {"clock_monotonic", monotonic, 1, 0, NULL},
    {"getppid_libc", getppid_libc, 1, 0, NULL},
    {"getppid_inline", getppid_inline, 1, 0, NULL},
    {"gettid", gettid_call, 1, 0, NULL},
    {"clock_syscall", monotonic_call, 1, 0, NULL},
    {"getrusage", usage_of_thread, 1, 0, NULL},
    {"getrandom", random_16, 1, 0, NULL},
    {"sched_yield", yield, 1, 0, NULL},
    {"futex_wake", wake_nobody, 1, 0, NULL},
    {"signal_install", install, 1, 0, NULL},
    {"signal_catch", catch_one, 1, 0, NULL},
    {"read_zero", read_zero, 1, 0, NULL},
    {"write_null", write_null, 1, 0, NULL},
    {"pipe", pipe_byte, 1, 0, NULL},
    {"pipe_4k", pipe_4k, 1, 0, NULL},
    {"unix_16k", unix_16k, 1, 0, NULL},
    {"eventfd", add_event, 1, 0, NULL},
    {"timerfd", set_timer, 1, 0, NULL},
    {"epoll", ask_epoll, 1, 0, NULL},
    {"poll", ask_poll, 1, 0, NULL},
    {"select_8", select_8, 1, 0, NULL},
    {"select_64", select_64, 1, 0, NULL},
    {"mmap_4k", map_4k, 1, 0, NULL},
    {"mmap_1m", map_1m, 1, 0, NULL},
    {"mprotect", protect, 2, 0, NULL},
    {"page_fault_4k", touch, 1, TOUCHED_A_BATCH, give_back},
    {"stat", stat_file, 1, 0, NULL},
    {"open_close", open_file, 1, 0, NULL},
    {"lseek", seek_file, 1, 0, NULL},
    {"pread_4k", read_4k, 1, 0, NULL},
    {"pwrite_4k", write_4k, 1, 0, NULL},
    {"fork_exit_wait", fork_exit_wait, 1, 0, NULL},
    {"spawn_true", spawn_true, 1, 0, NULL},
    /* Last: a process that had a thread is another for the C library. */
    {"thread_create_join", thread_create_join, 1, 0, NULL},
};

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

/* Eventfds of which the last is ready, and what asks about the last eight. */
static void prepare_events(void) {
    waiting = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < 64; i++) {
        ready[i] = eventfd(i == 63, EFD_CLOEXEC | EFD_NONBLOCK);
        check(ready[i] >= 0);
        if (i < 56) continue;
        struct epoll_event of = {.events = EPOLLIN};
        check(epoll_ctl(waiting, EPOLL_CTL_ADD, ready[i], &of) == 0);
        polled[i - 56] = (struct pollfd){.fd = ready[i], .events = POLLIN};
    }
    event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    check(event >= 0 && timer >= 0);
}

int main(int count, char **arguments) {
    check(count > 1);
    for (int i = 0; i < 10000; i++) x[i] = 1;
    memset(from, 1, sizeof from), memset(to, 1, sizeof to);
    memset(message, 1, sizeof message), memset(received, 1, sizeof received);
    zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    check(zero >= 0 && null >= 0 && pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    check(asprintf(&data_path, "%s/data", arguments[1]) > 0);
    file = open(data_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 256; i++) check(file >= 0 && write(file, page, 4096) == 4096);
    guarded = mmap((void *)0x510000000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    touched = mmap(NULL, 4096 * TOUCHED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(guarded != MAP_FAILED && touched != MAP_FAILED && madvise(touched, 4096 * TOUCHED, MADV_NOHUGEPAGE) == 0);
    *guarded = 1;
    prepare_events();
    install();
    for (size_t i = 0; i < sizeof PRICES / sizeof *PRICES; i++) price(&PRICES[i]);
    if (count > 2) barrier_of_two(atol(arguments[2]));
    return 0;
}
