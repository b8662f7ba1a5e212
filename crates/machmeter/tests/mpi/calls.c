/* Calls what is recorded and says on rank 0 and 1 how often and with how many bytes: "rank operation calls bytes" a line. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void told(const char *operation, int calls, long bytes)
{
    printf("%d %s %d %ld\n", rank, operation, calls, bytes);
}

int main(int argc, char **argv)
{
    enum { N = 1000 };
    static double out[256], in[256];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int other = 1 - rank;

    for (int i = 0; i < N; i++) {
        if (rank == 0)
            MPI_Send(out, 10, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
        else
            MPI_Recv(in, 10, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    told(rank == 0 ? "Send" : "Recv", N, 80L * N);

    /* A communicator with the ranks turned round: rank 0 of it is the last of the program. */
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    told("Comm_split", 1, 0);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    for (int i = 0; i < N; i++) {
        MPI_Irecv(in, 3, MPI_INT, rank, 9, turned, &requests[0]);
        MPI_Isend(out, 3, MPI_INT, rank, 9, turned, &requests[1]);
        MPI_Waitall(2, requests, statuses);
    }
    told("Irecv", N, 12L * N);
    told("Isend", N, 12L * N);
    told("Waitall", N, 0);

    MPI_Datatype row;
    MPI_Type_vector(4, 1, 8, MPI_INT, &row);
    MPI_Type_commit(&row);
    MPI_Sendrecv(out, 2, row, other, 1, in, 2, row, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    told("Sendrecv", 1, 32);
    MPI_Type_free(&row);
    /* The library may give the handle away again. */
    MPI_Type_contiguous(5, MPI_CHAR, &row);
    MPI_Type_commit(&row);
    MPI_Bcast(out, 3, row, 0, MPI_COMM_WORLD);
    MPI_Bcast(out, 0, MPI_DATATYPE_NULL == row ? row : MPI_CHAR, 0, MPI_COMM_WORLD);
    told("Bcast", 2, 15);
    MPI_Type_free(&row);

    int persistent = 5;
    MPI_Request start;
    if (rank == 0)
        MPI_Ssend_init(out, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &start);
    else
        MPI_Recv_init(in, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &start);
    for (int i = 0; i < persistent; i++) {
        MPI_Start(&start);
        MPI_Wait(&start, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&start);
    told(rank == 0 ? "Ssend_init" : "Recv_init", 1, 1);
    told("Start", persistent, 0);
    told("Wait", persistent, 0);

    for (int i = 0; i < N; i++)
        MPI_Allreduce(i % 2 ? MPI_IN_PLACE : (void *)out, in, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    told("Allreduce", N, 32L * N);
    MPI_Allgather(out, 2, MPI_INT, in, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 99, MPI_DOUBLE, in, 2, MPI_INT, MPI_COMM_WORLD);
    told("Allgather", 2, 16);
    MPI_Alltoall(out, 3, MPI_INT, in, 3, MPI_INT, MPI_COMM_WORLD);
    told("Alltoall", 1, 12L * size);
    int counts[2] = {2, 5}, places[2] = {0, 8}, mine[2], theirs[2];
    MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    told("Allgatherv", 2, 2 * 4L * counts[rank]);
    for (int i = 0; i < 2; i++) {
        mine[i] = counts[i];
        theirs[i] = counts[rank];
    }
    MPI_Alltoallv(out, mine, places, MPI_INT, in, theirs, places, MPI_INT, MPI_COMM_WORLD);
    told("Alltoallv", 1, 4L * (mine[0] + mine[1]));
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    int at[2] = {0, 512}, even[2] = {2, 2};
    MPI_Datatype same[2] = {types[rank], types[rank]};
    MPI_Alltoallw(out, even, at, types, in, even, at, same, MPI_COMM_WORLD);
    told("Alltoallw", 1, 2 * 4L + 2 * 8L);
    MPI_Gather(out, 3, MPI_CHAR, in, 3, MPI_CHAR, 1, MPI_COMM_WORLD);
    told("Gather", 1, 3);
    MPI_Scatterv(out, counts, places, MPI_INT, in, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
    told("Scatterv", 1, 4L * counts[rank]);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    told("Reduce_scatter", 1, 4L * (counts[0] + counts[1]));
    MPI_Request barrier;
    MPI_Ibarrier(turned, &barrier);
    int done = 0, tests = 0;
    while (!done) {
        MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
        tests++;
    }
    told("Ibarrier", 1, 0);
    told("Test", tests, 0);
    MPI_Comm_free(&turned);
    told("Comm_free", 1, 0);

    MPI_Win window;
    MPI_Win_create(in, sizeof in, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(out, 2, MPI_DOUBLE, other, 0, 2, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    told("Win_create", 1, 0);
    told("Put", 1, 16);
    told("Win_fence", 2, 0);
    told("Win_free", 1, 0);
    for (int i = 0; i < 3; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    told("Barrier", 3, 0);
    MPI_Finalize();
    return argc > 1 ? atoi(argv[1]) : 0;
}
