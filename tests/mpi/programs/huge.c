/* SPDX-License-Identifier: Apache-2.0
 * One element of a type with over 2 GiB, packed on the root, plain bytes on the others; then the other way about. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPiece = 1 << 20, kPieces = 2049, kTail = 3 };

/* Where piece i of the type is: with a gap behind each, or all on the same piece, for who only sends. */
static MPI_Datatype type_of(MPI_Aint stride) {
  MPI_Datatype pieces, whole;
  const int lengths[2] = {1, kTail};
  const MPI_Aint places[2] = {0, (kPieces - 1) * stride + kPiece};
  MPI_Type_create_hvector(kPieces, kPiece, stride, MPI_BYTE, &pieces);
  const MPI_Datatype parts[2] = {pieces, MPI_BYTE};
  MPI_Type_create_struct(2, lengths, places, parts, &whole);
  MPI_Type_commit(&whole);
  MPI_Type_free(&pieces);
  return whole;
}

static long differing(const char* at, MPI_Aint stride, const char* piece) {
  long wrong = 0;
  for (long i = 0; i < kPieces; ++i) wrong += memcmp(at + i * stride, piece, kPiece) != 0;
  return wrong + (memcmp(at + (kPieces - 1) * stride + kPiece, piece, kTail) != 0);
}

int main(int argc, char** argv) {
  int rank, sum = 0;
  long wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* makes gdrx's communicator */
  char* piece = malloc(kPiece);
  for (int i = 0; i < kPiece; ++i) piece[i] = (char)(i * 7 + i / 251);
  /* All that is sent is one piece, and what follows it is its beginning. */
  char* twice = malloc(2 * kPiece);
  memcpy(twice, piece, kPiece);
  memcpy(twice + kPiece, piece, kPiece);
  const MPI_Aint gapped = kPiece + 8;
  MPI_Datatype sent = type_of(0), received = type_of(gapped);
  char* into = rank == 0 ? NULL : calloc(kPieces + 1, gapped);
  MPI_Bcast(rank == 0 ? twice : into, 1, rank == 0 ? sent : received, 0, MPI_COMM_WORLD);
  if (rank != 0) {
    wrong = differing(into, gapped, piece);
    for (long i = 0; i + 1 < kPieces; ++i) wrong += into[i * gapped + kPiece] != 0;
    free(into);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf(wrong ? "%ld pieces are wrong\n" : "all pieces are right\n", wrong);
  MPI_Finalize();
  return wrong != 0;
}
