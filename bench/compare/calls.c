/* The mean of a plain loop of MPI calls, ns, which is what benchmarks of MPI print: a ping-pong of 8 B, and an allreduce of 8 B. A library that stands before the
   MPI's own: ranks that end with MPI_Finalize run the loops first, so that they are of the same launch and the same CPUs. Rank 0 adds a line a call to OUT. */
#include <mpi.h>
#include <stdio.h>

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

int MPI_Finalize(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int is_allreduce = 0; is_allreduce < 2; is_allreduce++) {
        double begin = 0;
        for (int i = 0; i < WARM_UP + TURNS; i++) {
            if (i == WARM_UP)
                begin = MPI_Wtime();
            turn(is_allreduce, rank);
        }
        double mean = (MPI_Wtime() - begin) / TURNS * 1e9;
        FILE *to = rank == 0 ? fopen(OUT, "a") : 0;
        if (to) {
            fprintf(to, "%s %.1f\n", is_allreduce ? "allreduce" : "pingpong", mean);
            fclose(to);
        }
    }
    return PMPI_Finalize();
}
