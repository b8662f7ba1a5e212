! Calls MPI by mpi_f08 and says how often, as calls.c does. The code is left out where the standard allows it.
program f08
  use mpi_f08
  implicit none
  integer :: rank, i, code
  type(MPI_Comm) :: turned
  type(MPI_Request) :: request
  double precision :: out(16), in(16)
  integer, asynchronous :: small(16)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  out = 1
  do i = 1, 100
    if (rank == 0) then
      call MPI_Send(out, 10, MPI_DOUBLE_PRECISION, 1, 7, MPI_COMM_WORLD)
    else
      call MPI_Recv(in, 10, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    end if
  end do
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, turned)
  do i = 1, 100
    call MPI_Isend(small, 3, MPI_INTEGER, rank, 9, turned, request)
    call MPI_Recv(in, 3, MPI_INTEGER, rank, 9, turned, MPI_STATUS_IGNORE)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Allreduce(out, in, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
  end do
  call MPI_Comm_free(turned)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(I0,A)', rank, ' Send 100 8000'
  if (rank == 0) print '(I0,A)', rank, ' Recv 100 1200'
  if (rank == 1) print '(I0,A)', rank, ' Recv 200 9200'
  print '(I0,A)', rank, ' Comm_split 1 0'
  print '(I0,A)', rank, ' Isend 100 1200'
  print '(I0,A)', rank, ' Wait 100 0'
  print '(I0,A)', rank, ' Allreduce 100 3200'
  print '(I0,A)', rank, ' Comm_free 1 0'
  print '(I0,A)', rank, ' Barrier 1 0'
  call MPI_Finalize(code)
end program
