C     Calls MPI by mpif.h and says how often, as calls.c does.
      program mpif
      implicit none
      include 'mpif.h'
      integer rank, other, code, i, turned, request
      double precision out(16), in(16)
      call MPI_INIT(code)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, code)
      other = 1 - rank
      out = 1
      do i = 1, 100
        if (rank .eq. 0) then
          call MPI_SEND(out, 10, MPI_DOUBLE_PRECISION, 1, 7,
     &                  MPI_COMM_WORLD, code)
        else
          call MPI_RECV(in, 10, MPI_DOUBLE_PRECISION, 0, 7,
     &                  MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
        end if
      end do
      call MPI_COMM_SPLIT(MPI_COMM_WORLD, 0, -rank, turned, code)
      do i = 1, 100
        call MPI_ISEND(out, 3, MPI_INTEGER, rank, 9, turned, request,
     &                 code)
        call MPI_RECV(in, 3, MPI_INTEGER, rank, 9, turned,
     &                MPI_STATUS_IGNORE, code)
        call MPI_WAIT(request, MPI_STATUS_IGNORE, code)
        call MPI_ALLREDUCE(out, in, 4, MPI_DOUBLE_PRECISION, MPI_SUM,
     &                     MPI_COMM_WORLD, code)
      end do
      call MPI_ALLGATHER(MPI_IN_PLACE, 99, MPI_DOUBLE_PRECISION, in, 2,
     &                   MPI_INTEGER, turned, code)
      call MPI_COMM_FREE(turned, code)
      call MPI_BARRIER(MPI_COMM_WORLD, code)
      if (rank .eq. 0) print '(I0,A)', rank, ' Send 100 8000'
      if (rank .eq. 0) print '(I0,A)', rank, ' Recv 100 1200'
      if (rank .eq. 1) print '(I0,A)', rank, ' Recv 200 9200'
      print '(I0,A)', rank, ' Comm_split 1 0'
      print '(I0,A)', rank, ' Isend 100 1200'
      print '(I0,A)', rank, ' Wait 100 0'
      print '(I0,A)', rank, ' Allreduce 100 3200'
      print '(I0,A)', rank, ' Allgather 1 8'
      print '(I0,A)', rank, ' Comm_free 1 0'
      print '(I0,A)', rank, ' Barrier 1 0'
      call MPI_FINALIZE(code)
      end program
