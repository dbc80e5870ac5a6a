! SPDX-License-Identifier: Apache-2.0
! A sum out of place and in place, by this binding.
program sums
  use mpi_f08
  implicit none
  integer :: rank, ranks, ierror, i
  double precision :: mine(1000), total(1000)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  do i = 1, 1000
    mine(i) = rank + i
  end do
  call MPI_Allreduce(mine, total, 1000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_Allreduce(MPI_IN_PLACE, mine, 1000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (any(mine /= total) .or. total(1000) /= ranks * (ranks - 1) / 2 + 1000 * ranks) stop 1
  if (rank == 0) print *, 'right'
  call MPI_Finalize(ierror)
end program sums
