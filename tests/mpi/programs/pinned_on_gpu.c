/* SPDX-License-Identifier: Apache-2.0
 * The host side of what is on a GPU is pinned memory, few calls copy a type of many blocks, and nothing of it is left. By
 * driver.c's counts: pinned_on_gpu DRIVER. `pinned_on_gpu DRIVER none`: no memory can be pinned. `pinned_on_gpu DRIVER
 * some`: no more than one buffer. */
#include "both.h"
#include "gpu_memory.h"

enum { kPart = 8 << 20, kRow = 4096, kRows = kPart / kRow, kRounds = 40 };
static const MPI_Comm world = MPI_COMM_WORLD;
static size_t *pinned, *most, *pins, *copies, *may_pin, *pageable;
static int *ended, *captures;
static int next, before;

static void expect(int is, const char* what) {
  ++checks;
  if (!is) differs("a buffer on a GPU", what);
}

static char byte_of(int of, size_t i, int round) { return (char)((size_t)of * 31 + i * 7 + i / 251 + (size_t)round * 13); }

static void fill(int round) {
  for (size_t i = 0; i < kPart; ++i) {
    in[i] = byte_of(rank, i, round);
    got[i] = kPattern;
  }
  write_gpu(gpu_in, in, kPart);
  write_gpu(gpu_out, got, kPart);
}

/* Large ones, as many as there are rounds: none is pinned anew. */
static void whole(void) {
  for (int round = 0; round < 3; ++round) {
    const size_t made = *pins;
    fill(round);
    MPI_Sendrecv((void*)gpu_in, kPart, MPI_BYTE, next, 1, (void*)gpu_out, kPart, MPI_BYTE, before, 1, world, MPI_STATUS_IGNORE);
    read_gpu(got, gpu_out, kPart);
    size_t i = 0;
    while (i < kPart && got[i] == byte_of(before, i, round)) ++i;
    expect(i == kPart, "what came");
    if (round > 0) expect(*pins == made, "memory that is pinned again");
  }
}

/* A column of an array: what lies between stays as it is. */
static void column(void) {
  MPI_Datatype type;
  MPI_Type_vector(kRows, 5, kRow, MPI_CHAR, &type);
  MPI_Type_commit(&type);
  fill(7);
  const size_t copied = *copies;
  MPI_Sendrecv((void*)(gpu_in + 1), 1, type, next, 2, (void*)(gpu_out + 1), 1, type, before, 2, world, MPI_STATUS_IGNORE);
  expect(*copies - copied <= 4, "the number of copies of a column");
  read_gpu(got, gpu_out, kPart);
  size_t bad = 0;
  for (size_t i = 0; i < kPart; ++i) {
    const int is_in = i % kRow >= 1 && i % kRow < 6;
    bad += got[i] != (is_in ? byte_of(before, i, 7) : kPattern);
  }
  expect(bad == 0, "a column");
  MPI_Type_free(&type);
}

/* Many at once, of many sizes. */
static void many(void) {
  MPI_Request* q = malloc(2 * kRounds * sizeof *q);
  fill(9);
  for (int i = 0; i < kRounds; ++i) {
    const int bytes = 1000 + 5000 * i;
    const unsigned place = (unsigned)(200000 * i);
    MPI_Irecv((void*)(gpu_out + place), bytes, MPI_BYTE, before, i, world, &q[2 * i]);
    MPI_Isend((void*)(gpu_in + place), bytes, MPI_BYTE, next, i, world, &q[2 * i + 1]);
  }
  for (int i = 0; i < 2 * kRounds; ++i) MPI_Wait(&q[i], MPI_STATUS_IGNORE);
  free(q);
  read_gpu(got, gpu_out, kPart);
  size_t bad = 0;
  for (size_t i = 0; i < kPart; ++i) {
    const int is_in = i / 200000 < kRounds && (int)(i % 200000) < 1000 + 5000 * (int)(i / 200000);
    bad += got[i] != (is_in ? byte_of(before, i, 9) : kPattern);
  }
  expect(bad == 0, "many at once");
}

/* More than is kept of pinned memory: persistent requests have theirs for as long as they live. */
static void bound(void) {
  enum { kRequests = 40 };
  MPI_Request q[kRequests];
  *pageable = kPart;
  for (int i = 0; i < kRequests; ++i) MPI_Send_init((void*)gpu_in, kPart, MPI_BYTE, next, 3, world, &q[i]);
  expect(*most > (size_t)200 << 20 && *most <= (size_t)256 << 20, "the most that is pinned");
  for (int i = 0; i < kRequests; ++i) MPI_Request_free(&q[i]);
  expect(*pinned <= (size_t)256 << 20, "what is kept");
}

int main(int argc, char** argv) {
  begin(argc, argv);
  free(in);
  free(got);
  in = malloc(kPart);
  got = malloc(kPart);
  next = (rank + 1) % size;
  before = (rank + size - 1) % size;
  load(argv[1], kPart);
  void* library = dlopen(argv[1], RTLD_NOW);
  pinned = dlsym(library, "fake_pinned");
  most = dlsym(library, "fake_most_pinned");
  pins = dlsym(library, "fake_pins");
  copies = dlsym(library, "fake_copies");
  may_pin = dlsym(library, "fake_may_pin");
  pageable = dlsym(library, "fake_pageable");
  captures = dlsym(library, "fake_captures");
  ended = dlsym(library, "fake_ended");
  const int none = argc > 2 && strcmp(argv[2], "none") == 0, some = argc > 2 && !none;
  if (none) *may_pin = 0;
  *captures = 1;
  whole();
  column();
  if (some) *may_pin = *pinned;
  many();
  expect(none ? *pins == 0 : *pinned > 0, "pinned memory");
  if (argc == 2) bound();
  expect(*captures == 1, "a capture of another thread");
  /* A persistent request that nobody frees. */
  MPI_Request kept;
  MPI_Send_init((void*)gpu_in, kPart, MPI_BYTE, next, 3, world, &kept);
  if (!some) {
    const int result = end();
    if (*pinned) printf("rank %d: %zu bytes are pinned after MPI_Finalize\n", rank, *pinned);
    return result || *pinned != 0;
  }
  *ended = 1; /* a driver that ends before the program does */
  return end();
}
