/* SPDX-License-Identifier: Apache-2.0
 * Every reduction x type x operator x count, in place and not, beside MPI's own result. Values are small, so that sums
 * and products are exact in any order. */
#include "both.h"

enum family { kInteger, kFortran, kReal, kComplex, kLogical, kBits, kPair, kFamilies };
static const char* kTakes[kFamilies] = {"SPmMlLoOxX", "SPmMOxX", "SPmM", "SP", "lLo", "OxX", "<>"};

static MPI_Op op_of(char letter) {
  switch (letter) {
    case 'S': return MPI_SUM;
    case 'P': return MPI_PROD;
    case 'm': return MPI_MIN;
    case 'M': return MPI_MAX;
    case 'l': return MPI_LAND;
    case 'L': return MPI_LOR;
    case 'o': return MPI_LXOR;
    case 'O': return MPI_BAND;
    case 'x': return MPI_BOR;
    case 'X': return MPI_BXOR;
    case '<': return MPI_MINLOC;
    default: return MPI_MAXLOC;
  }
}

/* `count` elements of the type, at `in`, each of small values. */
static void fill(MPI_Datatype type, enum family family, int count) {
  memset(in, 0, kBytes);
#define FILL(T, value) for (int i = 0; i < count; ++i) ((T*)in)[i] = (T)(value)
#define FILL_PAIR(T)                                                              \
  for (int i = 0; i < count; ++i) {                                               \
    struct { T value; int index; } one;                                           \
    memset(&one, 0, sizeof one);                                                  \
    one.value = (T)(rand() % 3);                                                  \
    one.index = rand() % 7;                                                       \
    memcpy(in + i * sizeof one, &one, sizeof one);                                \
  }
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  if (type == MPI_FLOAT || type == MPI_REAL) FILL(float, rand() % 3);
  else if (type == MPI_DOUBLE || type == MPI_DOUBLE_PRECISION) FILL(double, rand() % 3 - 1);
  else if (type == MPI_LONG_DOUBLE) FILL(long double, rand() % 3);
  else if (type == MPI_C_FLOAT_COMPLEX || type == MPI_COMPLEX) { count *= 2; FILL(float, rand() % 3 - 1); }
  else if (type == MPI_C_DOUBLE_COMPLEX) { count *= 2; FILL(double, rand() % 3 - 1); }
  else if (type == MPI_FLOAT_INT) FILL_PAIR(float)
  else if (type == MPI_DOUBLE_INT) FILL_PAIR(double)
  else if (type == MPI_LONG_INT) FILL_PAIR(long)
  else if (type == MPI_SHORT_INT) FILL_PAIR(short)
  else if (type == MPI_LONG_DOUBLE_INT) FILL_PAIR(long double)
  else if (type == MPI_2INT || type == MPI_2INTEGER) FILL_PAIR(int)
  else if (family == kLogical && bytes == 1) FILL(char, rand() % 2);
  else if (family == kLogical) FILL(int, rand() % 2);
  else for (int i = 0; i < count * bytes; ++i) in[i] = i % bytes == 0 ? (char)(rand() % 4) : 0;
}

static void check(const char* call, const char* name, MPI_Datatype type, int count) {
  char what[64];
  snprintf(what, sizeof what, "%d of %s", count, name);
  if (!same(type, count)) differs(call, what);
}

/* In place: what is behind the result stays as it was. */
static void check_rest(const char* call, int in_place, size_t done, size_t whole) {
  if (in_place && memcmp(got + done, in + done, whole - done) != 0) differs(call, "what is behind the result");
}

static void reduce_all(MPI_Datatype type, const char* name, MPI_Op op, int count) {
  MPI_Aint lowest, extent;
  MPI_Type_get_extent(type, &lowest, &extent);
  for (int in_place = 0; in_place < 2; ++in_place) {
    const void* s = in_place ? MPI_IN_PLACE : in;
#define BEFORE (in_place ? memcpy(r, in, (size_t)count * size * extent + 64) : memset(r, kPattern, (size_t)count * size * extent + 64))
    MAKE_BOTH(Allreduce, BEFORE, s, r, count, type, op, MPI_COMM_WORLD);
    check("Allreduce", name, type, count);
    const int root = count % size;
    /* MPICH's own crashes in place, where the root is not rank 0. */
    MAKE_BOTH(Reduce, BEFORE, rank == root && !(kMpich && r == want) ? s : in, r, count, type, op, root, MPI_COMM_WORLD);
    if (rank == root) check("Reduce", name, type, count);
    MAKE_BOTH(Scan, BEFORE, s, r, count, type, op, MPI_COMM_WORLD);
    check("Scan", name, type, count);
    MAKE_BOTH(Exscan, BEFORE, s, r, count, type, op, MPI_COMM_WORLD);
    if (rank > 0) check("Exscan", name, type, count);
    MAKE_BOTH(Reduce_scatter_block, BEFORE, s, r, count, type, op, MPI_COMM_WORLD);
    check("Reduce_scatter_block", name, type, count);
    check_rest("Reduce_scatter_block", in_place, (size_t)count * extent, (size_t)count * size * extent);
    int counts[64], sum = 0;
    for (int i = 0; i < size; ++i) sum += counts[i] = i == 1 ? 0 : (count + i) / 2;
    MAKE_BOTH(Reduce_scatter, BEFORE, s, r, counts, type, op, MPI_COMM_WORLD);
    check("Reduce_scatter", name, type, counts[rank]);
    check_rest("Reduce_scatter", in_place, (size_t)counts[rank] * extent, (size_t)sum * extent);
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  const struct {
    const char* name;
    MPI_Datatype type;
    enum family family;
  } types[] = {
#define T(name, family) {#name, MPI_##name, family}
      T(SIGNED_CHAR, kInteger), T(UNSIGNED_CHAR, kInteger), T(SHORT, kInteger), T(UNSIGNED_SHORT, kInteger),
      T(INT, kInteger), T(UNSIGNED, kInteger), T(LONG, kInteger), T(UNSIGNED_LONG, kInteger),
      T(LONG_LONG, kInteger), T(INT8_T, kInteger), T(UINT16_T, kInteger), T(INT32_T, kInteger),
      T(UINT64_T, kInteger), T(AINT, kInteger), T(OFFSET, kInteger), T(COUNT, kInteger),
      T(FLOAT, kReal), T(DOUBLE, kReal), T(LONG_DOUBLE, kReal), T(C_FLOAT_COMPLEX, kComplex),
      T(C_DOUBLE_COMPLEX, kComplex), T(C_BOOL, kLogical), T(BYTE, kBits), T(FLOAT_INT, kPair),
      T(DOUBLE_INT, kPair), T(LONG_INT, kPair), T(2INT, kPair), T(SHORT_INT, kPair), T(LONG_DOUBLE_INT, kPair),
      T(INTEGER, kFortran), T(REAL, kReal), T(DOUBLE_PRECISION, kReal), T(COMPLEX, kComplex),
      T(LOGICAL, kLogical), T(2INTEGER, kPair)};
  const int counts[] = {1, 3, 17, 1001, 5003};
  for (unsigned t = 0; t < sizeof types / sizeof types[0]; ++t) {
    if (types[t].type == MPI_DATATYPE_NULL) continue;
    for (const char* letter = kTakes[types[t].family]; *letter; ++letter) {
      for (unsigned c = 0; c < sizeof counts / sizeof counts[0]; ++c) {
        fill(types[t].type, types[t].family, counts[c] * size + 64);
        reduce_all(types[t].type, types[t].name, op_of(*letter), counts[c]);
      }
    }
  }
  return end();
}
