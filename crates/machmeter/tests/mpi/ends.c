/* Ends as its first argument says, after as many barriers as the second says. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, in;
    if (!strcmp(argv[1], "never"))
        return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(argv[1], "limited")) {
        /* Room for a header and a piece of 8192 slots. */
        struct rlimit most = {350000, 350000};
        setrlimit(RLIMIT_FSIZE, &most);
    }
    for (long i = atol(argv[2]); i > 0; i--)
        MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(argv[1], "kill")) {
        /* Rank 0 waits for what never comes. */
        if (rank == 0)
            MPI_Recv(&in, 1, MPI_INT, 1, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(200000);
        kill(getpid(), SIGKILL);
    }
    if (!strcmp(argv[1], "leave"))
        _exit(0);
    MPI_Finalize();
    return 0;
}
