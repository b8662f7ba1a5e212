/* A program whose time bench/predict predicts, and the thread that disturbs it.
   stencil N ROUNDS: Jacobi on N x N points of two ranks or more, a row to each neighbor and every 10 rounds the residual.
   barrier COUNT ROUNDS: COUNT dependent multiplications, then a barrier.
   inject PERIOD_US BURN_US CPU: without MPI, takes that CPU for BURN_US each PERIOD_US, before all that is not real-time.
   Prints seconds from start to end. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int inject(double period, double burn, int cpu)
{
	struct sched_param own = { .sched_priority = 10 };
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) || sched_setscheduler(0, SCHED_FIFO, &own)) {
		perror("inject");
		return 1;
	}
	for (double next = now();; next += period) {
		struct timespec t = { (time_t)next, (long)(1e9 * (next - (time_t)next)) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		double until = now() + burn;
		while (now() < until) { }
	}
}

static void stencil(int rank, int ranks, int n, int rounds)
{
	int rows = n / ranks;
	double *a = calloc((size_t)(rows + 2) * n, sizeof *a), *b = calloc((size_t)(rows + 2) * n, sizeof *b);
	int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
	if (!a || !b)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < n; i++)
		a[i] = b[i] = rank == 0;
	for (int round = 0; round < rounds; round++) {
		MPI_Request r[4];
		MPI_Irecv(a, n, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(a + (size_t)(rows + 1) * n, n, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &r[1]);
		MPI_Isend(a + n, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &r[2]);
		MPI_Isend(a + (size_t)rows * n, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &r[3]);
		MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
		double residual = 0;
		for (int y = 1; y <= rows; y++) {
			double *restrict to = b + (size_t)y * n;
			const double *mid = a + (size_t)y * n;
			for (int x = 1; x < n - 1; x++) {
				to[x] = 0.25 * (mid[x - 1] + mid[x + 1] + mid[x - n] + mid[x + n]);
				residual += (to[x] - mid[x]) * (to[x] - mid[x]);
			}
		}
		double *other = a;
		a = b;
		b = other;
		if (round % 10 == 9)
			MPI_Allreduce(MPI_IN_PLACE, &residual, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	free(a);
	free(b);
}

static void barrier(long count, int rounds)
{
	unsigned long x = 1;
	for (int round = 0; round < rounds; round++) {
		for (long i = 0; i < count; i++) {
			x = x * 6364136223846793005UL + 1;
			__asm__ volatile("" : "+r"(x));
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "inject"))
		return inject(1e-6 * atof(argv[2]), 1e-6 * atof(argv[3]), atoi(argv[4]));
	if (argc != 4)
		return 2;
	int rank, ranks;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	double begun = now();
	if (!strcmp(argv[1], "stencil"))
		stencil(rank, ranks, atoi(argv[2]), atoi(argv[3]));
	else
		barrier(atol(argv[2]), atoi(argv[3]));
	double took = now() - begun, longest;
	MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.9f\n", longest);
	MPI_Finalize();
}
