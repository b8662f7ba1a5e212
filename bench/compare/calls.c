/* The mean of a plain loop of MPI calls, ns, which is what benchmarks of MPI print: a ping-pong of 8 B, and an allreduce of 8 B. Rank r runs on the CPU that
   argument r names. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define WARM_UP 1000
#define TURNS 10000

static void turn(int is_allreduce, int rank)
{
    double in = 0, out = 1;
    if (is_allreduce) {
        MPI_Allreduce(&out, &in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Send(&out, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&in, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&in, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&out, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank;
    cpu_set_t own;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CPU_ZERO(&own);
    CPU_SET(atoi(argv[1 + rank]), &own);
    sched_setaffinity(0, sizeof own, &own);
    for (int is_allreduce = 0; is_allreduce < 2; is_allreduce++) {
        double begin = 0;
        for (int i = 0; i < WARM_UP + TURNS; i++) {
            if (i == WARM_UP)
                begin = MPI_Wtime();
            turn(is_allreduce, rank);
        }
        if (rank == 0)
            printf("%s %.1f\n", is_allreduce ? "allreduce" : "pingpong", (MPI_Wtime() - begin) / TURNS * 1e9);
    }
    MPI_Finalize();
    return 0;
}
