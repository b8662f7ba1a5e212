/* Calls each operation N times in a communicator of one rank, after a tenth as many to warm up, each in a function of its own: what is
   added to a call is the difference to a run without the recorder. */
#include <mpi.h>
#include <stdlib.h>

static int in[2], out[2] = {1, 2}, rank;
static MPI_Comm alone;
static MPI_Request request;

#define TURNS(name, call)                               \
    __attribute__((noinline)) static void name(long n)  \
    {                                                   \
        for (long i = 0; i < n; i++) {                  \
            call;                                       \
        }                                               \
    }

TURNS(send, MPI_Send(out, 2, MPI_INT, MPI_PROC_NULL, 7, alone))
TURNS(barrier, MPI_Barrier(alone))
TURNS(reduce, MPI_Allreduce(out, in, 2, MPI_INT, MPI_SUM, alone))
TURNS(isend, MPI_Isend(out, 2, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &request); MPI_Wait(&request, MPI_STATUS_IGNORE))
TURNS(sendrecv, MPI_Sendrecv(out, 2, MPI_INT, 0, 7, in, 2, MPI_INT, 0, 7, alone, MPI_STATUS_IGNORE))

__attribute__((noinline)) static void warm_up(long n)
{
    send(n), barrier(n), reduce(n), isend(n), sendrecv(n);
}

int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    warm_up(n / 10);
    send(n), barrier(n), reduce(n), isend(n), sendrecv(n);
    MPI_Finalize();
    return 0;
}
