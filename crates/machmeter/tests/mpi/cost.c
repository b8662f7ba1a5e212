/* Calls one operation N times in a communicator of one rank: what is added to a call is the difference to a run without the recorder. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    long n = atol(argv[2]);
    int in[2] = {0, 0}, out[2] = {1, 2}, flag, rank;
    MPI_Comm alone;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    double begin = MPI_Wtime();
    for (long i = 0; i < n; i++) {
        switch (argv[1][0]) {
        case 's': MPI_Send(out, 2, MPI_INT, MPI_PROC_NULL, 7, alone); break;
        case 'b': MPI_Barrier(alone); break;
        case 'r': MPI_Allreduce(out, in, 2, MPI_INT, MPI_SUM, alone); break;
        case 'p': MPI_Iprobe(0, 7, alone, &flag, MPI_STATUS_IGNORE); break;
        case 'i': MPI_Isend(out, 2, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &request); MPI_Wait(&request, MPI_STATUS_IGNORE); break;
        case 'x': MPI_Sendrecv(out, 2, MPI_INT, 0, 7, in, 2, MPI_INT, 0, 7, alone, MPI_STATUS_IGNORE); break;
        }
    }
    if (rank == 0)
        printf("%.3f\n", (MPI_Wtime() - begin) / n * 1e9);
    MPI_Finalize();
    return 0;
}
