/* Round trips of one byte between two processes on two CPUs, timed one by one, and what a further byte of long messages takes:
 * the least that does the thing. Prints a line each: name, median and 99 % quantile in ns. Arguments: the two CPUs. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIPS = 10000, FIRST = 1000, TRAINS = 300, LONG = 1 << 20, SHORT = LONG / 4, TRAIN = 16 };

static double took_ns[TRIPS];
static char message[LONG];
static int cpus[2];

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        exit(1);
}

static void receive(int fd) {
    char byte;
    while (read(fd, &byte, 1) != 1) {
    }
}

static void send_one(int fd) {
    char byte = 1;
    while (write(fd, &byte, 1) != 1) {
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, int near, int far, int polls) {
    if (polls) {
        fcntl(near, F_SETFL, O_NONBLOCK);
        fcntl(far, F_SETFL, O_NONBLOCK);
    }
    pid_t other = fork();
    if (other == 0) {
        pin(cpus[1]);
        for (int i = 0; i < FIRST + TRIPS; i++) {
            receive(far);
            send_one(far);
        }
        _exit(0);
    }
    pin(cpus[0]);
    for (int i = 0; i < FIRST + TRIPS; i++) {
        double begin_ns = now_ns();
        send_one(near);
        receive(near);
        if (i >= FIRST)
            took_ns[i - FIRST] = now_ns() - begin_ns;
    }
    waitpid(other, NULL, 0);
    qsort(took_ns, TRIPS, sizeof took_ns[0], by_value);
    printf("%s %.0f %.0f\n", name, took_ns[TRIPS / 2], took_ns[TRIPS * 99 / 100]);
    close(near);
    close(far);
}

/* Moves all bytes of a message; `way` is read or write. */
#define MOVE(way, fd, bytes)                                 \
    for (long at_ = 0, n_; at_ < (bytes); at_ += n_ > 0 ? n_ : 0) \
    n_ = way(fd, message + at_, (bytes)-at_)

/* What a byte more takes from message to message: of 15 further ones in a train, 1 MiB less 256 KiB each. Answers end the trains. */
static void measure_bytes(const char *name, int near, int far, int polls) {
    static const struct { long bytes, n; double sign; } trains[] = {{LONG, TRAIN, 1}, {LONG, 1, -1}, {SHORT, TRAIN, -1}, {SHORT, 1, 1}};
    if (polls) {
        fcntl(near, F_SETFL, O_NONBLOCK);
        fcntl(far, F_SETFL, O_NONBLOCK);
    }
    pid_t other = fork();
    pin(cpus[other == 0]);
    for (int i = 0; i < TRAINS; i++) {
        took_ns[i] = 0;
        for (int k = 0; k < 4; k++) {
            double begin_ns = now_ns();
            for (long m = 0; m < trains[k].n; m++) {
                if (other == 0) {
                    MOVE(read, far, trains[k].bytes);
                } else {
                    MOVE(write, near, trains[k].bytes);
                }
            }
            if (other == 0)
                send_one(far);
            else
                receive(near);
            took_ns[i] += trains[k].sign * (now_ns() - begin_ns) / (TRAIN - 1) / (LONG - SHORT);
        }
    }
    if (other == 0)
        _exit(0);
    waitpid(other, NULL, 0);
    qsort(took_ns, TRAINS, sizeof took_ns[0], by_value);
    printf("%s %.4f %.4f\n", name, took_ns[TRAINS / 2], took_ns[TRAINS * 99 / 100]);
    close(near);
    close(far);
}

static void tcp_pair(int fds[2]) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, bytes) != 0 || listen(listener, 1) != 0)
        exit(1);
    getsockname(listener, (struct sockaddr *)&address, &bytes);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fds[0], (struct sockaddr *)&address, bytes) != 0)
        exit(1);
    fds[1] = accept(listener, NULL, NULL);
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    close(listener);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    cpus[0] = atoi(argv[1]);
    cpus[1] = atoi(argv[2]);
    int fds[2];
    for (int polls = 1; polls >= 0; polls--) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
            return 1;
        measure(polls ? "unix_polling" : "unix_sleeping", fds[0], fds[1], polls);
        tcp_pair(fds);
        measure(polls ? "tcp_polling" : "tcp_sleeping", fds[0], fds[1], polls);
        tcp_pair(fds);
        measure_bytes(polls ? "bytes_polling" : "bytes_sleeping", fds[0], fds[1], polls);
    }
    return 0;
}
